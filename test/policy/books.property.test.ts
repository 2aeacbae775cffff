import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Ledger, type LedgerState } from '../../src/policy/ledger.ts';
import { pickNext, headOfLane, type BandView } from '../../src/policy/dispatch.ts';
import { frontOf, weigh } from '../../src/policy/effective-priority.ts';
import type { WaitingJob } from '../../src/policy/job.ts';
import type { Rules } from '../../src/policy/rules.ts';
import { oraclePick, replay, type Oracle, type OracleBand } from './oracle.ts';
import { play, promptRules, someSteps, type Moment } from './world.ts';

const literalClock: Rules = { ...promptRules, aging: { ...promptRules.aging, clock: 'job' } };
const quarterHours: Rules = {
  ...promptRules,
  bands: { low: -60, middle: -20, high: 30 },
  affinity: { bonus: 4 },
  aging: { ...promptRules.aging, divisorSeconds: 15, charge: 7 },
};

/** What the ledger says, in the oracle's words. */
function booksOf(state: LedgerState): Oracle {
  const bands: Record<string, OracleBand> = {};
  for (const [name, band] of Object.entries(state.bands)) {
    const lanes = Object.entries(band.lanes);
    bands[name] = {
      clock: band.books.clockMs,
      lastEnd: band.books.lastEndMs,
      V: band.books.virtualMs,
      F: { ...band.finishTagMs },
      S: Object.fromEntries(lanes.map(([member, lane]) => [member, lane.startTagMs])),
      passed: Object.fromEntries(lanes.map(([member, lane]) => [member, lane.passedMs])),
    };
  }
  const { run } = state;
  return {
    bands,
    waiting: [...state.jobs],
    running: run && {
      job: run.job,
      start: run.startedMs,
      S: run.lane.startTagMs,
      passed: run.lane.passedMs,
      clock: run.clockMs,
      passedOver: [...run.passedOver],
    },
  };
}

/** The oracle's state with only what has a meaning: books of lanes that wait, jobs and members in one order. */
function sorted(oracle: Oracle): Oracle {
  const bands = Object.entries(oracle.bands).map(([name, band]) => {
    const waits = ([member]: [string, number]): boolean =>
      oracle.waiting.some((job) => job.band === name && job.member === member);
    const only = (record: Record<string, number>): Record<string, number> =>
      Object.fromEntries(Object.entries(record).filter(waits));
    return [name, { ...band, S: only(band.S), passed: only(band.passed) }] as const;
  });
  return {
    bands: Object.fromEntries(bands),
    waiting: oracle.waiting.toSorted((a, b) => a.sequence - b.sequence),
    running: oracle.running && {
      ...oracle.running,
      passedOver: oracle.running.passedOver.toSorted(),
    },
  };
}

/** The same band with every waiting job as a front of its own and nothing kept from before. */
function everyJob(moment: Moment): BandView[] {
  const { ledger, nowMs } = moment;
  const eligible = [...ledger.jobs.values()].filter((job) => (job.eligibleAtMs ?? 0) <= nowMs);
  return [...ledger.bands.values()].map((band) => {
    const fronts = (jobs: WaitingJob[]) => jobs.map((job) => frontOf(job, ledger.rules));
    const inBand = eligible.filter((job) => job.band === band.band);
    return {
      band: band.band,
      clockMs: band.clockMs,
      fronts: fronts(inBand),
      heads: (weighing) =>
        [...band.lanes.values()].flatMap((lane) => {
          const own = inBand.filter((job) => job.member === lane.member);
          return headOfLane(lane, fronts(own), weighing) ?? [];
        }),
    };
  });
}

describe('the books', () => {
  test.each([
    ['the default rules', promptRules],
    ['the literal clock', literalClock],
    ['other bands and another divisor', quarterHours],
  ])('equal an oracle that derives them from the events, after every event: %s', (_, rules) => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        play(steps, {
          rules,
          afterEvent: (ledger, events) => {
            expect(sorted(booksOf(ledger.state()))).toEqual(sorted(replay(events, rules)));
          },
        });
      }),
      { numRuns: 25 },
    );
  });

  test('pick what a brute force over all waiting jobs picks, at every dispatch', () => {
    fc.assert(
      fc.property(
        someSteps(),
        fc.constantFrom(promptRules, literalClock, quarterHours),
        (steps, rules) => {
          play(steps, {
            rules,
            atDispatch: (moment) => {
              const { ledger, pick, residentModel, nowMs } = moment;
              const books = booksOf(ledger.state());
              expect(pick.job.id).toBe(oraclePick(books, residentModel, nowMs, rules)?.id);
              const slow = pickNext(everyJob(moment), weigh(rules, residentModel));
              expect(slow).toEqual({ ...pick, passedOver: expect.anything() });
              expect(slow?.passedOver.toSorted()).toEqual(pick.passedOver.toSorted());
            },
          });
        },
      ),
      { numRuns: 120 },
    );
  });

  test('never let V fall while the band has work', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        const last = new Map<string, number>();
        play(steps, {
          afterEvent: (ledger) => {
            for (const band of ledger.bands.values()) {
              const { virtualMs } = band.books;
              const busy = band.lanes.size > 0 || ledger.run?.job.band === band.band;
              if (busy) expect(virtualMs).toBeGreaterThanOrEqual(last.get(band.band) ?? 0);
              else expect(virtualMs).toBe(0);
              last.set(band.band, virtualMs);
            }
          },
        });
      }),
      { numRuns: 100 },
    );
  });

  test('keep V at or below every waiting S while all bases are those of their bands', () => {
    const steps = someSteps({ bases: [-100, 0, 100], disturbances: ['remove'] });
    fc.assert(
      fc.property(steps, (some) => {
        play(some, {
          afterEvent: (ledger) => {
            for (const { books, leastStartTagMs } of ledger.bands.values()) {
              expect(books.virtualMs).toBeLessThanOrEqual(leastStartTagMs);
            }
          },
        });
      }),
      { numRuns: 100 },
    );
  });

  test('never move a lane that waits, nor a clock past now or back while its band has work', () => {
    fc.assert(
      fc.property(someSteps({ disturbances: ['remove'] }), (steps) => {
        const before = new Map<string, { clockMs: number; tags: Map<string, number> }>();
        play(steps, {
          afterEvent: (ledger, events) => {
            const event = events.at(-1);
            for (const band of ledger.bands.values()) {
              const was = before.get(band.band);
              expect(band.clockMs).toBeLessThanOrEqual(ledger.nowMs);
              const tags = new Map(
                [...band.lanes].map(([id, lane]) => [id as string, lane.startTagMs]),
              );
              if (was) expect(band.clockMs).toBeGreaterThanOrEqual(was.clockMs);
              if (was && event?.kind === 'arrive') {
                for (const [id, tag] of was.tags) expect(tags.get(id)).toBe(tag);
              }
              before.set(band.band, { clockMs: band.clockMs, tags });
            }
          },
        });
      }),
      { numRuns: 100 },
    );
  });

  test('charge exactly the time the GPU was busy, and what a lane is charged is its cost by weight', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        const played = play(steps);
        for (const { usedMs, chargedMs, completed } of played.ran) {
          expect(chargedMs).toBe(completed ? Math.max(100, usedMs) : usedMs);
        }
        const busyMs = played.ran.reduce((sum, { usedMs }) => sum + usedMs, 0);
        const chargedMs = played.ran.reduce((sum, run) => sum + run.chargedMs, 0);
        const rounded = played.ran.reduce((sum, run) => sum + (run.chargedMs - run.usedMs), 0);
        expect(chargedMs - rounded).toBe(busyMs);
        expect(rounded).toBeLessThanOrEqual(100 * played.ran.length);
      }),
      { numRuns: 100 },
    );
  });
});

describe('a restart', () => {
  test('in the middle of a trace changes no pick', () => {
    fc.assert(
      fc.property(someSteps(), fc.array(fc.nat(60), { maxLength: 4 }), (steps, restarts) => {
        const order = (swaps: boolean): string[] =>
          play(steps, {
            swapLedger: (ledger, index) => {
              if (!swaps || !restarts.includes(index)) return ledger;
              const kept = JSON.parse(JSON.stringify(ledger.state())) as LedgerState;
              return Ledger.from(kept, ledger.rules);
            },
          }).ran.map((run) => run.job.id);
        expect(order(true)).toEqual(order(false));
      }),
      { numRuns: 100 },
    );
  });

  test('at another time of day changes no order', () => {
    fc.assert(
      fc.property(someSteps(), fc.integer({ min: 0, max: 4_000_000_000_000 }), (steps, startMs) => {
        const order = (at: number): string[] =>
          play(steps, { startMs: at }).ran.map((run) => run.job.id);
        expect(order(startMs)).toEqual(order(1_800_000_000_000));
      }),
      { numRuns: 100 },
    );
  });
});
