import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { largestOffset, pointMs } from '../../src/policy/rules.ts';
import { play, promptRules, someSteps } from './world.ts';

const D = pointMs(promptRules);

describe('every job', () => {
  test('runs once, and the GPU never idles while one may run', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        const { accepted, removed, ran, ledger } = play(steps);
        const completed = ran.filter((run) => run.completed).map((run) => run.job.id as string);
        const expected = accepted
          .filter((job) => !removed.includes(job))
          .map((job) => job.id as string);
        const removedIds = new Set(removed.map((job) => job.id as string));
        expect(new Set(completed).size).toBe(completed.length);
        expect(completed.filter((id) => removedIds.has(id))).toEqual([]);
        expect([...completed, ...removedIds].toSorted()).toEqual(
          [...expected, ...removedIds].filter((id, i, all) => all.indexOf(id) === i).toSorted(),
        );
        expect(ledger.jobs.size).toBe(0);
      }),
      { numRuns: 200 },
    );
  });
});

describe('one member', () => {
  test('with equal base, tier and model is served in order of arrival', () => {
    const alike = someSteps({ members: 1, bases: [0], tiers: ['pro'], models: ['a'] });
    fc.assert(
      fc.property(alike, (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick, nowMs }) => {
            const eligible = [...ledger.jobs.values()].filter(
              (job) => (job.eligibleAtMs ?? 0) <= nowMs,
            );
            expect(pick.job.sequence).toBe(Math.min(...eligible.map((job) => job.sequence)));
          },
        });
      }),
      { numRuns: 100 },
    );
  });

  test('with equal base and tier is overtaken only by a job of the resident model at most 600 s younger', () => {
    const twoModels = someSteps({ members: 1, bases: [0], tiers: ['free'] });
    fc.assert(
      fc.property(twoModels, (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick: { job }, residentModel, nowMs }) => {
            for (const other of ledger.jobs.values()) {
              if ((other.eligibleAtMs ?? 0) > nowMs || other.sequence >= job.sequence) continue;
              expect(job.model).toBe(residentModel);
              expect(other.model).not.toBe(residentModel);
              expect(job.arrivalMs - other.arrivalMs).toBeLessThanOrEqual(600_000);
            }
          },
        });
      }),
      { numRuns: 150 },
    );
  });

  test('in one band is served by the highest base + tier + affinity + waited / 60', () => {
    const oneBand = someSteps({ members: 1, bases: [-40, -3, 0, 0, 1, 12, 49] });
    fc.assert(
      fc.property(oneBand, (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick, residentModel, nowMs }) => {
            const literal = (id: string): number => {
              const job = [...ledger.jobs.values()].find((other) => other.id === id)!;
              const tier = { free: 0, pro: 1, max: 2 }[job.tier]!;
              const affinity = job.model === residentModel ? 10 : 0;
              return 60_000 * (job.base + tier + affinity) + (nowMs - job.arrivalMs);
            };
            const eligible = [...ledger.jobs.values()].filter(
              (job) => (job.eligibleAtMs ?? 0) <= nowMs,
            );
            const highest = Math.max(...eligible.map((job) => literal(job.id)));
            expect(literal(pick.job.id)).toBe(highest);
          },
        });
      }),
      { numRuns: 150 },
    );
  });

  test('never has a fresh job go before its own waiting one whose base is more than 12 higher', () => {
    const oneBand = someSteps({ members: 1, bases: [-40, 0, 5, 12, 13, 30] });
    fc.assert(
      fc.property(oneBand, (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick, nowMs }) => {
            const waitedMs = nowMs - pick.job.arrivalMs;
            for (const other of ledger.jobs.values()) {
              if ((other.eligibleAtMs ?? 0) > nowMs) continue;
              const aheadMs = D * (other.base - pick.job.base - largestOffset(promptRules));
              expect(waitedMs).toBeGreaterThanOrEqual(aheadMs);
            }
          },
        });
      }),
      { numRuns: 150 },
    );
  });
});
