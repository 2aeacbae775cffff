import { describe, expect, test } from '@jest/globals';
import { decide } from '../../src/policy/decide.ts';
import type { WaitingJob } from '../../src/policy/job.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { planAhead } from '../../src/policy/plan.ts';
import { basePriority } from '../../src/policy/priority.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob } from '../support/builders.ts';

const fromHeader = (id: string, header: string | undefined, facts: Partial<WaitingJob> = {}) =>
  aJob({
    id,
    ...basePriority(header === undefined ? {} : { xPriority: [header] }, defaultRules),
    ...(facts as object),
  });

function next(ledger: Ledger, nowMs: number): WaitingJob | undefined {
  const decision = decide(ledger, null, nowMs);
  if (decision.kind !== 'run') return undefined;
  ledger.dispatch(decision.pick, nowMs);
  return decision.pick.job;
}

describe('of the requests currently waiting, which do we pick up next', () => {
  test('two for different models, low enqueued first, high second: high is granted first', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(fromHeader('low', 'low', { model: 'a' }));
    ledger.arrive(fromHeader('high', 'elevated', { model: 'b' }));
    expect(next(ledger, 0)?.id).toBe('high');
  });

  test('equal priority of one identity, with equal residency, preserves arrival order', () => {
    const ledger = new Ledger(defaultRules);
    for (const id of ['first', 'second', 'third']) ledger.arrive(fromHeader(id, '3'));
    const order = ['first', 'second', 'third'].map(() => {
      const id = next(ledger, 0)?.id;
      ledger.end(0, 1000);
      return id;
    });
    expect(order).toEqual(['first', 'second', 'third']);
  });

  test('a running low-priority job is not interrupted, and the high one goes first afterwards', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(fromHeader('running', 'low'));
    expect(next(ledger, 0)?.id).toBe('running');
    ledger.arrive(fromHeader('low', 'low', { arrivalMs: 1000 }));
    ledger.arrive(fromHeader('high', 'elevated', { arrivalMs: 2000 }));
    expect(ledger.run?.job.id).toBe('running');
    ledger.end(60_000, 60_000);
    expect(next(ledger, 60_000)?.id).toBe('high');
  });

  test('a model\u2019s configured priority still works with no header present', () => {
    expect(basePriority({ modelFloor: 5 }, defaultRules).base).toBe(50);
    const ledger = new Ledger(defaultRules);
    ledger.arrive(fromHeader('plain', undefined));
    ledger.arrive(aJob({ id: 'pinned', ...basePriority({ modelFloor: 5 }, defaultRules) }));
    expect(next(ledger, 0)?.id).toBe('pinned');
  });

  test('max(): a header of -10 on a model configured at +5 still ranks +5', () => {
    const floored = basePriority({ xPriority: ['-10'], modelFloor: 5 }, defaultRules);
    expect(floored).toEqual(basePriority({ xPriority: ['5'] }, defaultRules));
  });

  test('X-Priority counts in its own unit, so that tier and affinity cannot cross its bands', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(fromHeader('normal', '0', { tier: 'max' }));
    ledger.arrive(fromHeader('elevated', '10'));
    expect(next(ledger, 0)?.id).toBe('elevated');
    expect(basePriority({ xPriority: ['10'] }, defaultRules).band).toBe('interactive');
  });

  test('a caller\u2019s position can go up as higher-priority work arrives', () => {
    const ledger = new Ledger(defaultRules);
    const mine = fromHeader('mine', '0');
    ledger.arrive(mine);
    const position = (): number | undefined =>
      planAhead(ledger, {
        nowMs: 0,
        residentModel: null,
        duration: () => ({ p50Ms: 1000, p90Ms: 1000 }),
      }).find((planned) => planned.job === mine)?.position;
    expect(position()).toBe(1);
    ledger.arrive(fromHeader('urgent', 'elevated'));
    expect(position()).toBe(2);
  });
});
