import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { WaitTimeline } from '../../src/gateway/wait-timeline.ts';
import type { Wait, WaitPiece } from '../../src/gateway/wait-timeline.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import type { DispatchRecord, EndRecord, RecordedJob } from '../../src/ports/dispatch-log.ts';
import { aDispatchRecord, anEndRecord } from '../support/dispatch-records.ts';

const MINE = 'mine';
const wait: Wait = {
  id: MINE,
  job: { member: 'ann', band: 'normal', base: 0, tier: 'free', model: 'flux' },
  fromMs: 10_000,
  toMs: 60_000,
  absences: [],
  recordedFromMs: 0,
  rules: defaultRules,
};

type AnyRecord = DispatchRecord | EndRecord;

function starts(
  id: string,
  atMs: number,
  facts: Partial<RecordedJob> = {},
  rest: Partial<DispatchRecord> = {},
): DispatchRecord {
  return { ...aDispatchRecord(id, facts), atMs, ...rest };
}
const ends = (id: string, atMs: number, loadMs = 0): EndRecord => anEndRecord(id, { atMs, loadMs });

function timeline(records: readonly AnyRecord[], facts: Partial<Wait> = {}): WaitTimeline {
  const all = new WaitTimeline({ ...wait, ...facts });
  for (const record of records) all.add(record);
  return all;
}

/** As `because from-to`, in seconds since the wait began. */
const shown = (pieces: readonly WaitPiece[], fromMs = wait.fromMs): string[] =>
  pieces.map(
    (piece) => `${piece.because} ${(piece.fromMs - fromMs) / 1000}-${(piece.toMs - fromMs) / 1000}`,
  );
const piecesOf = (records: readonly AnyRecord[], facts: Partial<Wait> = {}): string[] =>
  shown(timeline(records, facts).whole());

describe('a wait is cut into pieces', () => {
  test('behind the job that ran when it came, a higher band, a turn, and its own start', () => {
    expect(
      piecesOf([
        starts('a', 2000),
        ends('a', 15_000),
        starts('b', 15_010, { band: 'interactive', base: 100 }),
        ends('b', 30_000),
        starts('c', 30_010, { member: 'bob' }),
        ends('c', 59_990),
        starts(MINE, 60_000),
      ]),
    ).toEqual(['running 0-5', 'higher_band 5-20', 'fair_turn 20-49.99', 'dispatch 49.99-50']);
  });

  test('the load of a model for a job ahead is told apart from its run', () => {
    const records = [
      starts('a', 2000, { band: 'interactive', base: 100 }),
      ends('a', 15_000, 12_000),
      starts('b', 15_000, { band: 'interactive', base: 100 }),
      ends('b', 30_000, 10_000),
      starts(MINE, 30_000),
    ];
    expect(piecesOf(records, { toMs: 30_000 })).toEqual([
      'swap 0-4',
      'running 4-5',
      'swap 5-15',
      'higher_band 15-20',
    ]);
  });

  test.each<[string, Partial<RecordedJob>, Partial<DispatchRecord>]>([
    ['higher_band', { band: 'interactive', base: 100, member: 'ann' }, {}],
    ['aged_band', { band: 'batch', base: -100 }, { turnMs: 5 }],
    ['fair_turn', { member: 'bob', base: 5 }, { turnMs: 0 }],
    ['base', { member: 'bob', base: 5, tier: 'max' }, { turnMs: 1 }],
    ['tier', { member: 'bob', tier: 'max' }, { turnMs: 1 }],
    ['affinity', { member: 'bob', model: 'sdxl' }, { turnMs: 1, residentModel: 'sdxl' }],
    ['fair_turn', { member: 'bob', model: 'sdxl' }, { turnMs: 1, residentModel: 'flux' }],
    ['base', { member: 'ann', base: 1 }, {}],
    ['affinity', { member: 'ann', model: 'sdxl' }, { residentModel: 'sdxl' }],
    ['earlier', { member: 'ann' }, {}],
  ])('a job went ahead: %s', (because, winner, rest) => {
    expect(piecesOf([starts('a', 10_001, winner, rest)])).toEqual([`${because} 0-50`]);
  });

  test('an attempt of its own that went back, and a time in which nothing ran, are recovery', () => {
    const records = [
      starts(MINE, 10_500),
      { ...ends(MINE, 20_000), kind: 'back' as const },
      starts('a', 30_000, { member: 'bob' }),
      ends('a', 40_000),
    ];
    expect(piecesOf(records)).toEqual([
      'dispatch 0-0.5',
      'recovery 0.5-20',
      'fair_turn 20-30',
      'recovery 30-50',
    ]);
  });

  test('a pause and an end before another try are told as such, whatever ran meanwhile', () => {
    const records = [starts('a', 10_000, { member: 'bob' }), ends('a', 55_000)];
    const absences = [
      { why: 'paused', fromMs: 20_000, toMs: 30_000 },
      { why: 'ended', fromMs: 52_000, toMs: 58_000 },
    ] as const;
    expect(piecesOf(records, { absences })).toEqual([
      'running 0-10',
      'paused 10-20',
      'running 20-42',
      'ended 42-48',
      'dispatch 48-50',
    ]);
  });

  test('what is before the records is not guessed at', () => {
    const records = [starts('a', 40_000, { member: 'bob' }), ends('a', 50_000)];
    expect(piecesOf(records, { recordedFromMs: 40_000 })).toEqual([
      'unrecorded 0-30',
      'fair_turn 30-40',
      'recovery 40-50',
    ]);
    expect(piecesOf([], { recordedFromMs: 90_000 })).toEqual(['unrecorded 0-50']);
  });

  test('a lost record of an end leaves the run until the next one starts', () => {
    const records = [
      starts('a', 10_000, { member: 'bob' }),
      starts('b', 30_000, { band: 'interactive', base: 100 }),
      ends('a', 31_000),
    ];
    expect(piecesOf(records)).toEqual(['running 0-20', 'higher_band 20-50']);
  });

  test('what a replaced worker tells late changes nothing', () => {
    const records = [
      starts('a', 10_001, { member: 'bob' }),
      { ...ends('a', 20_000), kind: 'back' as const },
      starts('a', 21_000, { member: 'bob' }),
      { ...ends('a', 20_000), kind: 'back' as const },
      starts('a', 10_001, { member: 'bob' }),
      ends('a', 60_000),
    ];
    expect(piecesOf(records)).toEqual(['fair_turn 0-50']);
  });

  test('neighbours behind the same are one piece with its number of runs', () => {
    const bob = { member: 'bob' };
    const records = ['a', 'b', 'c'].flatMap((id, index) => [
      starts(id, 10_001 + index * 10_000, bob),
      ends(id, 20_000 + index * 10_000),
    ]);
    expect(timeline(records, { toMs: 40_000 }).whole()).toEqual([
      { fromMs: 10_000, toMs: 40_000, because: 'fair_turn', runs: 3 },
    ]);
  });

  test('a job that was served at once has no wait', () => {
    expect(piecesOf([starts(MINE, 10_000)], { toMs: 10_000 })).toEqual([]);
  });

  test('its own last dispatch is at hand for its terms', () => {
    const last = starts(MINE, 60_000);
    expect(timeline([starts(MINE, 10_500), ends(MINE, 11_000), last]).dispatch).toBe(last);
    expect(timeline([]).dispatch).toBeUndefined();
  });
});

test('whatever is on record, the pieces lie end to end and add up to the wait', () => {
  const moment = fc.integer({ min: 0, max: 100_000 });
  const id = fc.constantFrom('a', 'b', MINE);
  const record = fc.record({
    id,
    atMs: moment,
    kind: fc.constantFrom('dispatch', 'end', 'back'),
    loadMs: fc.integer({ min: 0, max: 20_000 }),
    band: fc.constantFrom('batch', 'normal', 'interactive'),
    turnMs: fc.constantFrom(0, 1),
  });
  const absence = fc.record({
    why: fc.constantFrom('paused' as const, 'ended' as const),
    fromMs: moment,
    lastsMs: fc.integer({ min: 0, max: 30_000 }),
  });
  fc.assert(
    fc.property(
      fc.array(record, { maxLength: 30 }),
      fc.array(absence, { maxLength: 3 }),
      fc.tuple(moment, moment, moment),
      (events, away, [one, other, recordedFromMs]) => {
        const [fromMs, toMs] = [Math.min(one, other), Math.max(one, other)];
        const absences = away
          .toSorted((a, b) => a.fromMs - b.fromMs)
          .map(({ why, fromMs: start, lastsMs }) => ({
            why,
            fromMs: start,
            toMs: start + lastsMs,
          }));
        const records = events
          .toSorted((a, b) => a.atMs - b.atMs)
          .map(({ kind, atMs, loadMs, turnMs, band, id: job }): AnyRecord =>
            kind === 'dispatch'
              ? starts(job, atMs, { band }, { turnMs })
              : { ...ends(job, atMs, loadMs), kind: kind },
          );
        const all = timeline(records, { fromMs, toMs, absences, recordedFromMs }).whole();
        let atMs = fromMs;
        for (const piece of all) {
          expect(piece.fromMs).toBe(atMs);
          expect(piece.toMs).toBeGreaterThan(piece.fromMs);
          atMs = piece.toMs;
        }
        expect(atMs).toBe(toMs);
        const neighbours = all.slice(1).map(({ because }, at) => because === all[at]?.because);
        expect(neighbours).not.toContain(true);
      },
    ),
    { numRuns: 2000 },
  );
});
