import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { largestOffset, pointMs } from '../../src/policy/rules.ts';
import { longestRunMs, play, promptRules, someSteps, type Played } from './world.ts';

const D = pointMs(promptRules);
const offset = largestOffset(promptRules);

/** Most points any two jobs of one band were apart. */
function spreadOf(played: Played): number {
  const points = played.accepted.map((job) => job.base - (promptRules.bands[job.band] ?? 0));
  return points.length === 0 ? 0 : Math.max(...points) - Math.min(...points) + offset;
}

describe('within a band', () => {
  test('a head that was passed over for its points loses only to heads whose turn had come before', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick, residentModel }) => {
            const band = ledger.bands.get(pick.band)!;
            const heads = band.heads({
              rules: promptRules,
              residentModel,
              without: null,
              affinity: promptRules.affinity.bonus,
              pointMs: D,
            });
            const best = Math.max(...heads.map((head) => head.points));
            const run = heads.find((head) => head.job.id === pick.job.id)!;
            for (const head of heads) {
              if (head.lane.passedMs < D * (best - head.points)) continue;
              expect(run.lane.startTagMs).toBeLessThanOrEqual(head.lane.startTagMs);
            }
          },
        });
      }),
      { numRuns: 200 },
    );
  });

  test('out-of-turn service a lane suffers is at most the spread of points and one run', () => {
    fc.assert(
      fc.property(someSteps({ bases: [0, 0, 10, 30, -30] }), (steps) => {
        let mostMs = 0;
        const played = play(steps, {
          afterEvent: (ledger) => {
            for (const band of ledger.bands.values()) {
              for (const lane of band.lanes.values()) mostMs = Math.max(mostMs, lane.passedMs);
            }
          },
        });
        expect(mostMs).toBeLessThanOrEqual(D * spreadOf(played) + longestRunMs(played));
      }),
      { numRuns: 200 },
    );
  });

  test('with equal points every other member starts at most one job before a newcomer has its first', () => {
    const equal = someSteps({
      bases: [0],
      tiers: ['free'],
      models: ['a'],
      members: 5,
      disturbances: ['remove'],
    });
    fc.assert(
      fc.property(equal, (steps) => {
        const startedSince = new Map<string, Map<string, number>>();
        play(steps, {
          afterEvent: (ledger, events) => {
            const waiting = new Set<string>(ledger.bands.get('normal')!.lanes.keys());
            for (const member of startedSince.keys())
              if (!waiting.has(member)) startedSince.delete(member);
            const event = events.at(-1)!;
            if (event.kind === 'arrive') {
              const { member } = event.job;
              const tags = ledger.bands.get('normal')!;
              const owesNothing = tags.lanes.get(member)!.startTagMs === tags.books.virtualMs;
              const isNew = owesNothing && ledger.run?.job.member !== member;
              if (isNew && !startedSince.has(member)) startedSince.set(member, new Map());
            } else if (event.kind === 'dispatch') {
              const { member } = ledger.run!.job;
              startedSince.delete(member);
              for (const started of startedSince.values()) {
                started.set(member, (started.get(member) ?? 0) + 1);
                expect(started.get(member)).toBeLessThanOrEqual(1);
              }
            }
          },
        });
      }),
      { numRuns: 200 },
    );
  });

  test('two members that both wait throughout get GPU time that differs by at most 2 D A + 4 J', () => {
    const contested = someSteps({
      members: 3,
      bases: [0, 0, 0, 20, -20],
      tiers: ['free'],
      burst: 12,
      mostMs: 300_000,
      disturbances: ['remove'],
    });
    fc.assert(
      fc.property(contested, (steps) => {
        let furthestMs = 0;
        const service = new Map<string, number>();
        const since = new Map<string, { least: number; most: number }>();
        const pairs = ['0 1', '0 2', '1 2'].map((pair) =>
          pair.split(' ').map((n) => `member-${n}`),
        );
        const played = play(steps, {
          afterEvent: (ledger, events) => {
            const event = events.at(-1)!;
            if (event.kind === 'end') {
              const ended = events.findLast((past) => past.kind === 'dispatch')!;
              const job = events.find((past) => past.kind === 'arrive' && past.job.id === ended.id);
              const { member } = (job as { job: { member: string } }).job;
              service.set(member, (service.get(member) ?? 0) + event.usedMs);
            }
            const waiting = new Set<string>(ledger.bands.get('normal')!.lanes.keys());
            for (const [one, other] of pairs as [string, string][]) {
              const ahead = (service.get(one) ?? 0) - (service.get(other) ?? 0);
              const range = since.get(one + other) ?? { least: ahead, most: ahead };
              if (waiting.has(one) && waiting.has(other)) {
                const least = Math.min(range.least, ahead);
                const most = Math.max(range.most, ahead);
                since.set(one + other, { least, most });
                furthestMs = Math.max(furthestMs, most - least);
              } else {
                since.delete(one + other);
              }
            }
          },
        });
        expect(furthestMs).toBeLessThanOrEqual(2 * D * spreadOf(played) + 4 * longestRunMs(played));
      }),
      { numRuns: 200 },
    );
  });
});

describe('between bands', () => {
  test('every wait is bounded by the points above it, what its own band ran, and a run for each band', () => {
    const crowded = someSteps({ members: 5, burst: 10, mostMs: 300_000, disturbances: ['remove'] });
    fc.assert(
      fc.property(crowded, (steps) => {
        const played = play(steps);
        const longestMs = longestRunMs(played);
        const bandCount = Object.keys(promptRules.bands).length;
        if (bandCount * longestMs > D * 212) return;
        const tier = (name: string): number => promptRules.tiers[name]?.bonus ?? 0;
        const highest =
          Math.max(...played.accepted.map((job) => job.base + tier(job.tier))) +
          promptRules.affinity.bonus;
        for (const { job, startMs } of played.ran) {
          const ownMs = played.ran
            .filter((run) => run.job.band === job.band)
            .reduce((sum, run) => {
              const fromMs = Math.max(run.startMs, job.arrivalMs);
              return sum + Math.max(0, Math.min(run.startMs + run.chargedMs, startMs) - fromMs);
            }, 0);
          const boundMs =
            D * (highest - job.base - tier(job.tier)) +
            promptRules.aging.charge * ownMs +
            (bandCount + 1) * longestMs;
          expect(startMs - job.arrivalMs).toBeLessThanOrEqual(boundMs);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('a band goes before a waiting job of another only if a job of it has earned the difference', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick, nowMs }) => {
            const band = ledger.bands.get(pick.band)!;
            const eligible = [...ledger.jobs.values()].filter(
              (job) => (job.eligibleAtMs ?? 0) <= nowMs,
            );
            const reached = eligible
              .filter((job) => job.band === pick.band)
              .map((job) => D * job.base + nowMs - Math.max(band.clockMs, job.arrivalMs));
            for (const other of eligible.filter((job) => job.band !== pick.band)) {
              expect(Math.max(...reached) + D * offset).toBeGreaterThanOrEqual(D * other.base);
            }
          },
        });
      }),
      { numRuns: 200 },
    );
  });

  test('while all batch jobs are fresh none goes before a waiting interactive one', () => {
    fc.assert(
      fc.property(someSteps({ bases: [-100, 100], mostMs: 4_000_000 }), (steps) => {
        play(steps, {
          atDispatch: ({ ledger, pick, nowMs }) => {
            const eligible = [...ledger.jobs.values()].filter(
              (job) => (job.eligibleAtMs ?? 0) <= nowMs,
            );
            const batch = eligible.filter((job) => job.band === 'batch');
            const fresh = batch.every((job) => nowMs - job.arrivalMs < D * (200 - offset));
            const interactive = eligible.some((job) => job.band === 'interactive');
            if (fresh && interactive) expect(pick.band).toBe('interactive');
          },
        });
      }),
      { numRuns: 200 },
    );
  });
});
