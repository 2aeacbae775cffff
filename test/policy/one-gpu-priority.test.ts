import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decide } from '../../src/policy/decide.ts';
import type { WaitingJob } from '../../src/policy/job.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { basePriority } from '../../src/policy/priority.ts';
import { checkRules, defaultRules } from '../../src/policy/rules.ts';
import { standingOf } from '../../src/policy/standing.ts';
import { aJob, rulesWith } from '../support/builders.ts';

const minute = 60_000;

/** The order in which jobs run that wait together, a second each; all at one time unless they arrive later. */
function orderOf(jobs: WaitingJob[], nowMs = 0, residentModel: string | null = null): string[] {
  const ledger = new Ledger(defaultRules);
  for (const job of jobs) ledger.arrive(job);
  const order: string[] = [];
  for (let atMs = nowMs; ; atMs += 1000) {
    const decision = decide(ledger, residentModel, atMs);
    if (decision.kind !== 'run') return order;
    ledger.dispatch(decision.pick, atMs);
    ledger.end(atMs + 1000, 1000);
    order.push(decision.pick.job.id);
  }
}

const baseOf = (header?: string): number =>
  basePriority(header === undefined ? {} : { llamaSwapPriority: [header] }, defaultRules).base;

describe('priority is a signed integer, 0 = normal, higher = more urgent', () => {
  test('100 is interactive, 0 is normal, -100 is batch, and they run in that order', () => {
    const jobs = [-100, 0, 100].map((base) => aJob({ id: String(base), base }));
    expect(orderOf(jobs)).toEqual(['100', '0', '-100']);
  });

  test('an absent or unparseable header means 0', () => {
    expect(baseOf()).toBe(0);
    expect(baseOf('high')).toBe(0);
  });

  test('named aliases resolve to the numbers', () => {
    expect(['interactive', 'normal', 'batch'].map(baseOf)).toEqual([100, 0, -100]);
  });

  test('the number is the interface: callers can use any value', () => {
    const anyTwo = fc.tuple(
      fc.integer({ min: -10_000, max: 10_000 }),
      fc.integer({ min: 13, max: 10_000 }),
    );
    fc.assert(
      fc.property(anyTwo, ([base, above]) => {
        const lower = aJob({ id: 'lower', base });
        const higher = aJob({ id: 'higher', base: Math.min(10_000, base + above) });
        fc.pre(higher.base > base);
        expect(orderOf([lower, higher])).toEqual(['higher', 'lower']);
      }),
    );
  });
});

describe('effective = band + tier_bonus + swap_affinity + aging', () => {
  test('all four terms fold into one score', () => {
    const ledger = new Ledger(defaultRules);
    const job = aJob({ base: -100, tier: 'max' });
    ledger.arrive(job);
    expect(standingOf(ledger, job, 'model', 30 * minute).score).toEqual({
      band: -100,
      tier: 2,
      affinity: 10,
      aging: 30,
      effective: -58,
    });
  });

  test('the dispatcher picks the highest effective priority of what one member has waiting', () => {
    const jobs = [
      aJob({ id: 'old', base: 0, arrivalMs: 0 }),
      aJob({ id: 'high', base: 20, arrivalMs: 30 * minute }),
      aJob({ id: 'resident', base: 15, model: 'here', arrivalMs: 30 * minute }),
    ];
    expect(orderOf(jobs, 30 * minute, 'here')).toEqual(['old', 'resident', 'high']);
  });
});

describe('tier bonus: max always beats pro beats free, within a band', () => {
  const tiers = ['free', 'pro', 'max'];

  test('of three members that have had equal service, in every band', () => {
    for (const base of [-100, 0, 100]) {
      const jobs = tiers.map((tier) => aJob({ id: tier, member: tier, tier, base }));
      expect(orderOf(jobs)).toEqual(['max', 'pro', 'free']);
    }
  });

  test('a max member\u2019s batch job is -98, ahead of pro\u2019s -99 and free\u2019s -100', () => {
    const effective = tiers.map((tier) => {
      const ledger = new Ledger(defaultRules);
      const job = aJob({ tier, base: -100 });
      ledger.arrive(job);
      return standingOf(ledger, job, null, 0).score.effective;
    });
    expect(effective).toEqual([-100, -99, -98]);
  });

  test('-98, -99 and -100 sent as numbers without tiers run in that order', () => {
    const jobs = [-100, -99, -98].map((base) =>
      aJob({ id: String(base), member: String(base), base }),
    );
    expect(orderOf(jobs)).toEqual(['-98', '-99', '-100']);
  });

  test('max batch (-98) stays below any normal job', () => {
    const jobs = [
      aJob({ id: 'max batch', member: 'a', tier: 'max', base: -100 }),
      aJob({ id: 'free normal', member: 'b', base: 0 }),
    ];
    expect(orderOf(jobs)).toEqual(['free normal', 'max batch']);
  });

  test('tier breaks ties inside a band and can never promote across one', () => {
    const jobs = [
      aJob({ id: 'max normal', member: 'a', tier: 'max', base: 0 }),
      aJob({ id: 'free interactive', member: 'b', base: 100 }),
    ];
    expect(orderOf(jobs)).toEqual(['free interactive', 'max normal']);
  });
});

describe('band spacing must stay far larger than the largest tier and affinity offset', () => {
  test('a max member\u2019s batch work never outranks a free member\u2019s interactive request', () => {
    const jobs = [
      aJob({ id: 'batch', member: 'a', tier: 'max', base: -100, model: 'here' }),
      aJob({ id: 'interactive', member: 'b', base: 100, model: 'elsewhere' }),
    ];
    expect(orderOf(jobs, 0, 'here')).toEqual(['interactive', 'batch']);
  });

  test('a configuration that breaks it is refused with the numbers', () => {
    const close = rulesWith({ bands: { batch: -12, normal: 0, interactive: 100 } });
    expect(checkRules(close)).toEqual([expect.stringMatching(/12 apart.*above 12/)]);
  });
});

describe('aging is the one term allowed to cross bands', () => {
  test.each([
    ['max', 198],
    ['pro', 199],
    ['free', 200],
  ])('a lone %s batch job overtakes fresh interactive work at %i minutes', (tier, minutes) => {
    const firstAt = (atMs: number): string | undefined =>
      orderOf(
        [
          aJob({ id: 'batch', member: 'a', tier, base: -100 }),
          aJob({ id: 'fresh', member: 'b', base: 100, arrivalMs: atMs }),
        ],
        atMs,
      )[0];
    expect(firstAt(minutes * minute - 1)).toBe('fresh');
    expect(firstAt(minutes * minute)).toBe('batch');
  });

  test('a batch job that has waited long enough beats normal traffic', () => {
    const jobs = [
      aJob({ id: 'batch', member: 'a', base: -100 }),
      aJob({ id: 'normal', member: 'b', base: 0, arrivalMs: 101 * minute }),
    ];
    expect(orderOf(jobs, 101 * minute)).toEqual(['batch', 'normal']);
  });

  test('at a divisor of 60 a minute of waiting is a point', () => {
    const ledger = new Ledger(defaultRules);
    const job = aJob();
    ledger.arrive(job);
    const aged = (atMs: number): number => standingOf(ledger, job, null, atMs).score.aging;
    expect([0, 30_000, minute, 600 * minute].map(aged)).toEqual([0, 0.5, 1, 600]);
  });

  test('the order of what waits does not change by time alone', () => {
    const jobs = [-100, -60, 0, 3, 100].map((base, index) =>
      aJob({ id: `job-${index}`, member: `m-${index}`, base, arrivalMs: index * 1000 }),
    );
    const first = (atMs: number): string | undefined => orderOf(jobs, atMs)[0];
    expect(new Set([4000, minute, 100 * minute, 10_000 * minute].map(first)).size).toBe(1);
  });
});

describe('swap affinity keeps the model cache from thrashing', () => {
  test('a job needing the resident model goes first among near-ties', () => {
    const jobs = [
      aJob({ id: 'cold', member: 'a', model: 'elsewhere' }),
      aJob({ id: 'warm', member: 'b', model: 'here', arrivalMs: 9 * minute }),
    ];
    expect(orderOf(jobs, 9 * minute, 'here')).toEqual(['warm', 'cold']);
  });

  test('a resident model that is not known favours nobody', () => {
    const jobs = [aJob({ id: 'one', model: 'a' }), aJob({ id: 'two', model: 'b' })];
    expect(orderOf(jobs, 0, null)).toEqual(['one', 'two']);
  });

  test('affinity never lifts batch over interactive', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 187 }),
        fc.constantFrom('free', 'pro', 'max'),
        (age, tier) => {
          const jobs = [
            aJob({ id: 'batch', member: 'a', tier, base: -100, model: 'here' }),
            aJob({
              id: 'chat',
              member: 'b',
              base: 100,
              model: 'elsewhere',
              arrivalMs: age * minute,
            }),
          ];
          expect(orderOf(jobs, age * minute, 'here')[0]).toBe('chat');
        },
      ),
    );
  });
});

describe('priority applies at dispatch time', () => {
  test('a running job is never interrupted: what arrives meanwhile waits for its end', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(aJob({ id: 'film', base: -100 }));
    const decision = decide(ledger, null, 0);
    if (decision.kind !== 'run') throw new Error('a job waits');
    ledger.dispatch(decision.pick, 0);
    ledger.arrive(aJob({ id: 'chat', base: 100, arrivalMs: 1000 }));
    expect(ledger.run?.job.id).toBe('film');
    expect(() => ledger.dispatch({ ...decision.pick, job: aJob({ id: 'chat' }) }, 2000)).toThrow();
    expect([...ledger.jobs.keys()]).toEqual(['chat']);
  });

  test('one member\u2019s 200 batch shots do not starve another member\u2019s film', () => {
    const jobs = [
      ...Array.from({ length: 200 }, (_, shot) =>
        aJob({ id: `a-${shot}`, member: 'a', base: -100 }),
      ),
      ...Array.from({ length: 3 }, (_, shot) => aJob({ id: `b-${shot}`, member: 'b', base: -100 })),
    ];
    expect(orderOf(jobs).slice(0, 6)).toEqual(['a-0', 'b-0', 'a-1', 'b-1', 'a-2', 'b-2']);
  });
});
