import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decide } from '../../src/policy/decide.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { planAhead, type Estimate, type PlanOutlook } from '../../src/policy/plan.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob } from '../support/builders.ts';
import { play, promptRules, someSteps } from './world.ts';

const second = 1000;
const exactly = (p50Ms: number): Estimate => ({ p50Ms, p90Ms: p50Ms });
const outlook = (more: Partial<PlanOutlook> = {}): PlanOutlook => ({
  nowMs: 0,
  residentModel: 'model',
  duration: (_, cold) => exactly(cold ? 50 * second : 20 * second),
  ...more,
});

describe('the plan', () => {
  test('of nothing is empty', () => {
    expect(planAhead(new Ledger(defaultRules), outlook())).toEqual([]);
  });

  test('tells who goes when, with swaps', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(aJob({ id: 'cold', model: 'other' }));
    ledger.arrive(aJob({ id: 'warm' }));
    expect(planAhead(ledger, outlook())).toMatchObject([
      { job: { id: 'warm' }, position: 1, startsIn: exactly(0), endsIn: exactly(20 * second) },
      {
        job: { id: 'cold' },
        position: 2,
        startsIn: exactly(20 * second),
        endsIn: exactly(70 * second),
      },
    ]);
    expect(ledger.jobs.size).toBe(2);
  });

  test('foresees as many as are asked for; the rest stand by base priority and arrival', () => {
    const ledger = new Ledger(defaultRules);
    const jobs = [
      aJob({ id: 'late', base: 5, sequence: 4 }),
      aJob({ id: 'early', base: 5, sequence: 3 }),
      aJob({ id: 'low', base: -5, sequence: 1, model: 'other' }),
      aJob({ id: 'high', base: 9, sequence: 5 }),
    ];
    for (const job of jobs) ledger.arrive(job);
    const plan = planAhead(ledger, outlook({ foreseen: 1 }));
    expect(plan).toMatchObject([
      { job: { id: 'high' }, position: 1 },
      { job: { id: 'early' }, position: 2, startsIn: exactly(20 * second) },
      { job: { id: 'late' }, position: 3 },
      {
        job: { id: 'low' },
        position: 4,
        startsIn: exactly(60 * second),
        endsIn: exactly(80 * second),
      },
    ]);
    expect(planAhead(ledger, outlook({ foreseen: 0 }))).toHaveLength(4);
    expect(ledger.jobs.size).toBe(4);
  });

  test('begins when the running job is expected to end', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(aJob({ id: 'runs' }));
    const decision = decide(ledger, 'model', 0);
    if (decision.kind !== 'run') throw new Error('a job waits');
    ledger.dispatch(decision.pick, 0);
    ledger.arrive(aJob({ id: 'waits', arrivalMs: 5 * second }));
    const startsIn = (nowMs: number): number | undefined =>
      planAhead(ledger, outlook({ nowMs }))[0]?.startsIn.p50Ms;
    expect(startsIn(5 * second)).toBe(15 * second);
    expect(startsIn(30 * second)).toBe(0);
  });

  test('has ranges that widen less than the sum of what each job may take longer', () => {
    const ledger = new Ledger(defaultRules);
    for (let index = 0; index < 10; index += 1) ledger.arrive(aJob());
    const duration = (): Estimate => ({ p50Ms: 10 * second, p90Ms: 13 * second });
    const plan = planAhead(ledger, outlook({ duration }));
    expect(plan[1]?.startsIn).toEqual({ p50Ms: 10 * second, p90Ms: 13 * second });
    expect(plan[9]?.startsIn).toEqual({ p50Ms: 90 * second, p90Ms: 99 * second });
  });

  test('lets a job in backoff run when its time has come', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(aJob({ id: 'later', eligibleAtMs: 90 * second }));
    ledger.arrive(aJob({ id: 'now' }));
    expect(planAhead(ledger, outlook())).toMatchObject([
      { job: { id: 'now' }, startsIn: exactly(0) },
      { job: { id: 'later' }, startsIn: exactly(90 * second) },
    ]);
  });

  test('is what happens if nothing else arrives', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        const plans: { order: string[]; after: number }[] = [];
        const runFor = 20 * second;
        const { ran } = play([...steps, { kind: 'end', afterMs: 0 }], {
          swapLedger: (ledger, index) => {
            if (index === steps.length && ledger.run === null) {
              const duration = (): Estimate => exactly(runFor);
              const plan = planAhead(ledger, outlook({ nowMs: ledger.nowMs, duration }));
              plans.push({ order: plan.map((planned) => planned.job.id), after: 0 });
            }
            return ledger;
          },
        });
        for (const { order } of plans) {
          if (order.length > 0)
            expect(ran.slice(-order.length).map((run) => run.job.id)).toEqual(order);
        }
      }),
      { numRuns: 20 },
    );
  });

  test('of 10,000 jobs has every job once', () => {
    const ledger = new Ledger(promptRules);
    for (let index = 0; index < 10_000; index += 1) {
      ledger.arrive(
        aJob({
          member: `member-${index % 100}`,
          base: [-100, 0, 100][index % 3]!,
          arrivalMs: index,
        }),
      );
    }
    const plan = planAhead(ledger, outlook({ nowMs: 10_000 }));
    expect(new Set(plan.map((planned) => planned.job.id)).size).toBe(10_000);
    expect(plan.at(-1)?.position).toBe(10_000);
  });
});
