import { describe, expect, test } from '@jest/globals';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';
import { Random } from '../../src/simulate/random.ts';
import { simulate, type RanJob, type Simulation } from '../../src/simulate/run.ts';
import { scenarios } from '../../src/simulate/scenarios.ts';
import type { Arrival, WorkItem } from '../../src/simulate/workload.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

function work(member: string, base: number, runSeconds: number, model = 'model'): WorkItem {
  return { member, tier: 'free', base, model, runMs: runSeconds * second };
}

function many(count: number, item: WorkItem, atMs = 0): Arrival[] {
  return Array.from({ length: count }, () => ({ ...item, atMs }));
}

function run(
  arrivals: Arrival[],
  more: { stopMs?: number; swapMs?: number; rules?: Rules } = {},
): Simulation {
  const { rules = defaultRules, swapMs = 0, ...rest } = more;
  return simulate({ arrivals, chains: [], swapMs, ...rest }, rules);
}

function builtIn(name: string, rules: Rules = defaultRules, seed = 1): Simulation {
  const scenario = scenarios.find((each) => each.name === name)!;
  return simulate(scenario.workload(new Random(seed)), rules);
}

const of = (ran: Simulation, member: string): readonly RanJob[] =>
  ran.ran.filter(({ job }) => (job.member as string) === member);
const waitMinutes = ({ job, startMs }: RanJob): number => (startMs - job.arrivalMs) / minute;
const gpuMs = (runs: readonly RanJob[]): number =>
  runs.reduce((sum, each) => sum + each.endMs - each.startMs, 0);
const swaps = (ran: Simulation): number => ran.ran.filter(({ swapMs }) => swapMs > 0).length - 1;

/** The wait that this part of the jobs did not exceed, in minutes. */
function quantile(runs: readonly RanJob[], part: number): number {
  const waits = runs.map(waitMinutes).toSorted((a, b) => a - b);
  return waits[Math.ceil(part * waits.length) - 1]!;
}

describe('a day with a film', () => {
  test('chats wait for about one shot, and the second film has its share', () => {
    const day = builtIn('film-day');
    const chats = of(day, 'chat-1');
    expect(quantile(chats, 0.5)).toBeLessThan(3);
    expect(quantile(chats, 0.95)).toBeLessThan(5);
    expect(quantile(chats, 1)).toBeLessThan((250 + 30 + 30 + 20 + 20) / 60);
    const last = Math.max(...of(day, 'film-b').map(waitMinutes));
    expect(last).toBeGreaterThan(185);
    expect(last).toBeLessThan(205);
  });

  test('with the literal clock chats wait for hours', () => {
    const literal = { ...defaultRules, aging: { ...defaultRules.aging, clock: 'job' as const } };
    const chats = of(builtIn('film-day', literal), 'chat-1');
    expect(quantile(chats, 0.5)).toBeGreaterThan(200);
    expect(quantile(chats, 0.95)).toBeGreaterThan(500);
  });

  test('two equal films never differ by more than a shot with its swap and 720 s', () => {
    const films = run(
      [
        ...many(40, work('one', -100, 240, 'video')),
        ...many(40, work('other', -100, 240, 'video')),
        ...Array.from({ length: 60 }, (_, i) =>
          many(1, work('chat', 100, 20, 'chat'), i * 5 * minute),
        ).flat(),
      ],
      { swapMs: 30 * second },
    );
    let ahead = 0;
    for (const each of films.ran.filter(({ job }) => job.band === 'batch').slice(0, 78)) {
      ahead += (each.endMs - each.startMs) * ((each.job.member as string) === 'one' ? 1 : -1);
      expect(Math.abs(ahead)).toBeLessThanOrEqual((270 + 720) * second);
    }
  });
});

describe('shares', () => {
  test('16-minute renders and 10-second images have half of the GPU each, as backlogs', () => {
    const ran = run([...many(60, work('video', 0, 960)), ...many(6000, work('image', 0, 10))], {
      stopMs: 20 * hour,
    });
    const total = gpuMs(ran.ran);
    expect(Math.abs(gpuMs(of(ran, 'video')) / total - 0.5)).toBeLessThan(0.02);
  });

  test('a producer that sends one at a time has its half against a backlog, thanks to the hold', () => {
    const share = (rules: Rules): number => {
      const ran = builtIn('one-at-a-time', rules);
      expect(ran.heldMs).toBeLessThanOrEqual(0.02 * gpuMs(ran.ran));
      return gpuMs(of(ran, 'producer')) / gpuMs(ran.ran);
    };
    const noHold = { ...defaultRules.aging, hold: { seconds: 0, share: 0 } };
    expect(share(defaultRules)).toBeGreaterThan(0.48);
    expect(share({ ...defaultRules, aging: noHold })).toBeLessThan(0.1);
  });

  test('tiers have shares by weight while they contend', () => {
    const arrivals = ['free', 'pro', 'max'].flatMap((tier) =>
      many(2000, { ...work(tier, 0, 20), tier }),
    );
    const ran = run(arrivals, { stopMs: 9 * hour });
    const perWeight = [
      gpuMs(of(ran, 'free')),
      gpuMs(of(ran, 'pro')) / 1.5,
      gpuMs(of(ran, 'max')) / 2,
    ];
    expect(Math.max(...perWeight) - Math.min(...perWeight)).toBeLessThan(5 * minute);
  });

  test('a bonus is a head start spent once: without weights the long-run shares are equal', () => {
    const tiers = Object.fromEntries(
      Object.entries(defaultRules.tiers).map(([name, { bonus }]) => [name, { bonus, weight: 1 }]),
    );
    const arrivals = [
      ...many(2000, { ...work('max', 0, 20), tier: 'max' }),
      ...many(2000, work('free', 0, 20)),
    ];
    const ran = run(arrivals, { stopMs: 10 * hour, rules: { ...defaultRules, tiers } });
    expect(gpuMs(of(ran, 'max')) / gpuMs(ran.ran)).toBeCloseTo(0.5, 2);
  });

  test('splitting work over three bands gains little more than the 2 % of each lower band', () => {
    const ran = run(
      [
        ...[-100, 0, 100].flatMap((base) => many(1000, work('x', base, 20))),
        ...many(3000, work('y', 100, 20)),
        ...many(3000, work('z', 100, 20)),
      ],
      { stopMs: 10 * hour },
    );
    expect(gpuMs(of(ran, 'x')) / gpuMs(ran.ran)).toBeLessThan(0.37);
  });
});

describe('one member', () => {
  test('with 40 jobs that alternate between two models has them run with at most 2 swaps', () => {
    expect(swaps(builtIn('alternating'))).toBeLessThanOrEqual(2);
  });

  test('with a steady stream at base 100 has its job at 60 run within 40 minutes and one job', () => {
    const stream = Array.from({ length: 400 }, (_, i) =>
      many(1, work('m', 100, 20), i * 20 * second),
    );
    const ran = run([...many(1, work('m', 60, 20)), ...stream.flat()]);
    const waited = ran.ran.filter(({ job }) => job.base === 60).map(waitMinutes)[0]!;
    expect(waited).toBeGreaterThan(39);
    expect(waited).toBeLessThanOrEqual(40 + 20 / 60);
  });
});

describe('points in a band', () => {
  /** Wait of one job at that base while ten members saturate the interactive band. */
  const waitAt = (base: number): number => {
    const crowd = Array.from({ length: 10 }, (_, i) => many(400, work(`m-${i}`, 100, 20))).flat();
    const ran = run([...crowd, ...many(1, work('late', base, 20), 20 * minute)], {
      stopMs: 12 * hour,
    });
    return waitMinutes(of(ran, 'late')[0]!);
  };

  test('cost others at most as many minutes as there are points, however many members there are', () => {
    expect(waitAt(51)).toBeLessThan(49 + 5);
    expect(waitAt(60)).toBeLessThan(40 + 5);
    expect(waitAt(90)).toBeLessThan(10 + 5);
  });

  test('make a job wait less the more it has', () => {
    const waits = [50, 51, 60, 90, 100].map(waitAt);
    expect(waits).toEqual(waits.toSorted((a, b) => b - a));
  });

  test('of the resident model make a job for another wait 10 minutes and a round, not 10 for each member', () => {
    const crowd = Array.from({ length: 30 }, (_, i) => many(200, work(`m-${i}`, 100, 20))).flat();
    const ran = run([...crowd, ...many(1, work('other', 100, 20, 'b'), 10 * minute)], {
      stopMs: 6 * hour,
    });
    expect(of(ran, 'other').map(waitMinutes)[0]).toBeLessThan(10 + 10 + 1);
  });
});

describe('a newcomer', () => {
  test('has its first job before members that are far ahead have their next', () => {
    const lanes = Array.from({ length: 10 }, (_, i) => many(20, work(`y-${i}`, 0, 60, 'y'))).flat();
    const ran = run(
      [
        ...many(40, work('a', 0, 60, 'x')),
        ...lanes,
        ...many(1, work('new', 0, 60, 'y'), 700 * second),
      ],
      { swapMs: 30 * second, stopMs: 5 * hour },
    );
    expect(of(ran, 'new').map(waitMinutes)[0]).toBeLessThan(13);
  });

  test('does not pay for what somebody used before the band was idle', () => {
    const ran = run([
      ...many(1, work('a', 0, 960)),
      ...many(1, work('a', 0, 20), 10 * hour),
      ...many(100, work('b', 0, 10), 10 * hour),
    ]);
    expect(of(ran, 'a').map(waitMinutes)[1]).toBeLessThan(0.5);
  });
});

describe('a band that ages', () => {
  const crowd = (): Arrival[] =>
    Array.from({ length: 10 }, (_, i) => many(1000, work(`chat-${i}`, 100, 20))).flat();

  test('has a lone max batch job start after 198 minutes', () => {
    const ran = builtIn('saturated');
    const waited = of(ran, 'film').map(waitMinutes)[0]!;
    expect(waited).toBeGreaterThanOrEqual(198);
    expect(waited).toBeLessThanOrEqual(198 + 20 / 60);
  });

  test('is served by GPU time, so that one-second jobs do not hold up a long one for days', () => {
    const ran = run(
      [
        ...many(1, work('a', -100, 960)),
        ...crowd(),
        ...many(1, work('a', -100, 960), 10 * minute),
        ...many(2000, work('b', -100, 1), 20 * minute),
      ],
      { stopMs: 40 * hour },
    );
    expect(of(ran, 'a').map(waitMinutes)[1]).toBeLessThan(21 * 60);
  });

  test('is not held back by a job of a base far below', () => {
    const ran = run(
      [...crowd(), ...many(1, work('low', -1000, 240)), ...many(8, work('m', -100, 240))],
      { stopMs: 28 * hour },
    );
    expect(of(ran, 'm').map(waitMinutes)[0]).toBeLessThan(203);
    expect(of(ran, 'm')).toHaveLength(8);
  });

  test('does not lend its age to a job that has just come', () => {
    const ran = run(
      [
        ...crowd(),
        ...many(1, work('old', -10_000, 240)),
        ...many(1, work('new', -100, 240), 250 * minute),
      ],
      { stopMs: 10 * hour },
    );
    expect(of(ran, 'new').map(waitMinutes)[0]).toBeGreaterThan(199);
  });

  test('does not let ten members that ripen together swamp the chats', () => {
    const ran = builtIn('ripening');
    const chats = ran.ran.filter(({ job }) => job.band === 'interactive');
    expect(quantile(chats, 0.95)).toBeLessThan(8);
    expect(gpuMs(ran.ran.filter(({ job }) => job.band === 'batch')) / ran.endMs).toBeGreaterThan(
      0.15,
    );
  });

  test('has nobody wait days for one second of GPU time after an outage of three days', () => {
    const ran = run([
      ...many(30, work('film', -100, 240)),
      ...Array.from({ length: 20 }, (_, i) =>
        many(1, work('chat', 100, 20), 72 * hour + i * minute),
      ).flat(),
    ]);
    expect(Math.max(...of(ran, 'chat').map(waitMinutes))).toBeLessThan(10);
  });
});

describe('a simulation', () => {
  test('is the same for the same seed, and another for another', () => {
    const order = (seed: number) => builtIn('film-day', defaultRules, seed).ran.slice(0, 100);
    expect(order(3)).toEqual(order(3));
    expect(order(4)).not.toEqual(order(3));
  });
});
