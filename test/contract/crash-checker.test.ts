import { describe, expect, test } from '@jest/globals';
import { crashFaults } from '../support/crash-checker.ts';
import type { CrashFaultKind } from '../support/crash-fault.ts';
import type { CrashEvent, CrashFact, Victim } from '../support/crash-history.ts';

const at = (atMs: number, fact: CrashFact): CrashEvent => ({ ...fact, atMs });
const accepted = (atMs: number, key: string, jobId: string): CrashEvent =>
  at(atMs, { kind: 'accepted', key, jobId });
const read = (atMs: number, jobId: string, state: string, code: string | null = null): CrashEvent =>
  at(atMs, { kind: 'read', jobId, state, code });
const result = (atMs: number, jobId: string, sha256: string, status = 200): CrashEvent =>
  at(atMs, { kind: 'result', jobId, status, sha256 });
const begin = (atMs: number, generation: number, jobId: string, key: string): CrashEvent =>
  at(atMs, { kind: 'generation-start', generation, jobId, key });
const end = (atMs: number, generation: number, sha256: string | null): CrashEvent =>
  at(atMs, { kind: 'generation-end', generation, sha256 });
const crash = (victim: Victim, fromMs: number, toMs: number): CrashEvent[] => [
  at(fromMs, { kind: 'kill', victim }),
  at(toMs, { kind: 'start', victim }),
];

/** A job of its own that nothing happens to, from 0 on. */
const calm = [
  at(0, { kind: 'submit', key: 'calm' }),
  at(1, { kind: 'cut', key: 'calm' }),
  at(2, { kind: 'submit', key: 'calm' }),
  accepted(3, 'calm', 'c'),
  begin(4, 1, 'c', 'calm'),
  read(5, 'c', 'running'),
  end(6, 1, 'bytes of 1'),
  read(7, 'c', 'completed'),
  result(8, 'c', 'bytes of 1'),
];
/** One whose worker was killed: it was cut and ran again. */
const crashed = [
  accepted(10, 'hit', 'h'),
  begin(20, 2, 'h', 'hit'),
  ...crash('gpu', 30, 40),
  end(31, 2, null),
  begin(50, 3, 'h', 'hit'),
  end(60, 3, 'bytes of 3'),
  read(70, 'h', 'completed'),
  result(71, 'h', 'bytes of 3'),
];
const sound = [...calm, ...crashed];

const kindsIn = (events: readonly CrashEvent[]): CrashFaultKind[] => [
  ...new Set(crashFaults(events.toSorted((a, b) => a.atMs - b.atMs)).map(({ kind }) => kind)),
];
const without = (...gone: CrashEvent['kind'][]): CrashEvent[] =>
  sound.filter(({ kind }) => !gone.includes(kind));

describe('a history that breaks no promise', () => {
  test('is one in which a cut job ran again', () => {
    expect(crashFaults(sound)).toEqual([]);
  });

  test.each<[string, CrashEvent[]]>([
    ['a key was answered with its one job again and again', [accepted(9, 'calm', 'c')]],
    [
      'reads and results are the same later',
      [read(90, 'c', 'completed'), result(91, 'c', 'bytes of 1')],
    ],
    [
      'a job failed in a crash of its own',
      [
        accepted(100, 'bad', 'b'),
        begin(110, 4, 'b', 'bad'),
        ...crash('redis', 120, 130),
        end(121, 4, null),
        read(140, 'b', 'failed', 'internal_error'),
      ],
    ],
    [
      'two crashes cut one job twice',
      [
        accepted(100, 'bad', 'b'),
        begin(110, 4, 'b', 'bad'),
        ...crash('gpu', 111, 112),
        end(111, 4, null),
        begin(113, 5, 'b', 'bad'),
        ...crash('gpu', 114, 115),
        end(114, 5, null),
        begin(116, 6, 'b', 'bad'),
        end(117, 6, 'bytes of 6'),
        read(118, 'b', 'completed'),
        result(119, 'b', 'bytes of 6'),
      ],
    ],
  ])('is one in which %s', (_, more) => {
    expect(kindsIn([...sound, ...more])).toEqual([]);
  });
});

describe('a fault is found when', () => {
  test.each<[CrashFaultKind, string, CrashEvent[]]>([
    ['lost', 'an accepted job is absent', [read(90, 'c', 'absent')]],
    [
      'lost',
      'an accepted job is absent from the start',
      [accepted(90, 'new', 'n'), read(91, 'n', 'absent')],
    ],
    [
      'without-end',
      'an accepted job only waits',
      [accepted(90, 'new', 'n'), read(91, 'n', 'waiting')],
    ],
    ['without-end', 'nobody ever saw an accepted job', [accepted(90, 'new', 'n')]],
    [
      'two-ends',
      'a completed job is cancelled later',
      [...crash('gpu', 5, 6), read(90, 'c', 'cancelled')],
    ],
    ['two-ends', 'an end is taken back', [read(90, 'c', 'running'), read(91, 'c', 'completed')]],
    ['two-jobs-for-a-key', 'a repeat gets another job', [accepted(90, 'calm', 'h')]],
    ['two-keys-for-a-job', 'two keys get one job', [accepted(90, 'other', 'c')]],
    [
      'not-asked-for',
      'a job is generated that nobody was given',
      [begin(90, 9, 'x', 'x'), end(91, 9, 'x')],
    ],
    [
      'other-request',
      'a job is generated with the request of another',
      [
        accepted(90, 'new', 'n'),
        begin(91, 9, 'n', 'hit'),
        end(92, 9, 'n'),
        read(93, 'n', 'completed'),
        result(94, 'n', 'n'),
      ],
    ],
    [
      'two-at-once',
      'a generation begins before another has ended',
      [
        accepted(54, 'new', 'n'),
        begin(55, 9, 'n', 'new'),
        end(65, 9, 'n'),
        read(80, 'n', 'completed'),
        result(81, 'n', 'n'),
      ],
    ],
    ['other-bytes', 'a result is read that was never generated', [result(90, 'c', 'bytes of 3')]],
    [
      'after-its-end',
      'a job is generated that was known to have ended',
      [...crash('gpu', 6, 7), begin(90, 9, 'c', 'calm'), end(91, 9, 'x')],
    ],
    [
      'refused-for-good',
      'a submission is refused with 500',
      [at(90, { kind: 'refused', key: 'calm', status: 500 })],
    ],
    [
      'ended-by-itself',
      'a process ends that nobody killed',
      [at(90, { kind: 'ended-by-itself', victim: 'gpu' })],
    ],
  ])('%s: %s', (kind, _, more) => {
    expect(kindsIn([...sound, ...more])).toContain(kind);
  });

  test('a generation has no end and another begins', () => {
    const open = sound.filter(
      (event) => !(event.kind === 'generation-end' && event.generation === 1),
    );
    expect(kindsIn(open)).toContain('two-at-once');
  });

  test('other-bytes: what was read is a generation that was cut, or two of them', () => {
    const again = sound.map((event) =>
      event.kind === 'generation-end' && event.generation === 2
        ? { ...event, sha256: 'bytes of 2' }
        : event,
    );
    expect(kindsIn(again)).toEqual([]);
    expect(kindsIn([...again, result(90, 'h', 'bytes of 2')])).toEqual(['other-bytes']);
    expect(kindsIn([...sound, result(90, 'h', 'bytes of 2')])).toEqual(['other-bytes']);
  });

  test('no-result: a completed job answers with an error', () => {
    const broken = sound.map((event) =>
      event.kind === 'result' ? { ...event, status: 410 } : event,
    );
    expect(kindsIn(broken)).toEqual(['no-result']);
  });

  test('nothing-proved: nothing was accepted, killed, generated or read', () => {
    expect(kindsIn([])).toEqual(['nothing-proved']);
    for (const kind of ['accepted', 'kill', 'result', 'generation-end'] as const)
      expect(kindsIn(without(kind))).toContain('nothing-proved');
  });
});

describe('without-excuse', () => {
  const unexcused = ['without-excuse'];
  const moved = (victim: Victim, fromMs: number, toMs: number): CrashEvent[] => [
    ...without('kill', 'start'),
    ...crash(victim, fromMs, toMs),
  ];

  test('a repeat needs a crash of worker or Redis between its two generations', () => {
    expect(kindsIn(moved('redis', 30, 40))).toEqual([]);
    expect(kindsIn(moved('gpu', 11, 19))).toEqual(unexcused);
    expect(kindsIn(moved('gpu', 51, 55))).toEqual(unexcused);
    expect(kindsIn(moved('ingress', 30, 40))).toEqual(unexcused);
    expect(kindsIn(moved('scorer', 30, 40))).toEqual(unexcused);
  });

  test('one crash does not excuse two repeats of a job', () => {
    const twice = [
      ...sound.filter(({ atMs }) => atMs < 60),
      end(51, 3, null),
      begin(52, 4, 'h', 'hit'),
      end(60, 4, 'bytes of 4'),
      read(70, 'h', 'completed'),
      result(71, 'h', 'bytes of 4'),
    ];
    expect(kindsIn(twice)).toEqual(unexcused);
    expect(kindsIn([...twice, ...crash('gpu', 51, 51.5)])).toEqual([]);
  });

  test('a repeat and a failure need a crash each, whichever of them fits which', () => {
    const both = [
      ...sound,
      accepted(12, 'bad', 'b'),
      begin(13, 4, 'b', 'bad'),
      end(14, 4, null),
      read(45, 'b', 'failed', 'internal_error'),
    ];
    expect(kindsIn(both)).toEqual(unexcused);
    // This one can excuse the failure alone, so the other is left to the repeat.
    expect(kindsIn([...both, ...crash('redis', 15, 16)])).toEqual([]);
    expect(kindsIn([...both, ...crash('redis', 46, 47)])).toEqual([]);
    expect(kindsIn([...both, ...crash('redis', 80, 81)])).toEqual(unexcused);
  });

  test('a job that failed without ever being generated has none', () => {
    const never = [accepted(12, 'bad', 'b'), read(45, 'b', 'failed', 'internal_error')];
    expect(kindsIn([...sound, ...never])).toEqual(unexcused);
  });
});
