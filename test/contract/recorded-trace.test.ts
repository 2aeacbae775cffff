import { describe, expect, test } from '@jest/globals';
import type { DispatchRecord, EndRecord } from '../../src/ports/dispatch-log.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { recordedTrace } from '../../src/simulate/recorded-trace.ts';
import { reportOf } from '../../src/simulate/report.ts';
import { simulate } from '../../src/simulate/run.ts';
import { withSettings } from '../../src/simulate/settings.ts';
import { readTrace, traceText } from '../../src/simulate/trace.ts';
import { aDispatchRecord, anEndRecord } from '../support/dispatch-records.ts';

const day: (DispatchRecord | EndRecord)[] = [
  anEndRecord('before the first record', { usedMs: 9000 }),
  aDispatchRecord('film', { arrivalMs: 5000, base: -100, member: 'ann', model: 'video' }),
  anEndRecord('film', { usedMs: 250_000, loadMs: 30_000 }),
  aDispatchRecord('chat', { arrivalMs: 1234, base: 100, tier: 'pro', model: 'chat' }),
  anEndRecord('chat', { kind: 'back', usedMs: 40_000, loadMs: 20_000 }),
  aDispatchRecord('chat', { arrivalMs: 1234, base: 100, tier: 'pro', model: 'chat' }, false),
  anEndRecord('chat', { usedMs: 10_500 }),
  aDispatchRecord('unmeasured', { arrivalMs: 6000 }),
  anEndRecord('unmeasured', { usedMs: 3000 }),
  aDispatchRecord('running', { arrivalMs: 7000 }),
];

describe('a trace of dispatch records', () => {
  test('has a line for each job that ended, with the time of all its attempts less the loads', () => {
    expect(recordedTrace(day)).toEqual({
      lines: [
        { at: 1.234, seconds: 30.5, member: 'mort', tier: 'pro', priority: 100, model: 'chat' },
        { at: 5, seconds: 220, member: 'ann', tier: 'free', priority: -100, model: 'video' },
        { at: 6, seconds: 3, member: 'mort', tier: 'free', priority: 0, model: 'model' },
      ],
      unended: 1,
      unmeasuredLoads: 1,
      loadMs: 30_000,
    });
  });

  test('of nothing is empty', () => {
    expect(recordedTrace([])).toEqual({
      lines: [],
      unended: 0,
      unmeasuredLoads: 0,
      loadMs: undefined,
    });
  });

  test('is read as it was written, and simulated under two configurations side by side', () => {
    const workload = readTrace(traceText(recordedTrace(day).lines), 30_000);
    expect(workload.arrivals).toEqual([
      { atMs: 0, runMs: 30_500, member: 'mort', tier: 'pro', base: 100, model: 'chat' },
      { atMs: 3766, runMs: 220_000, member: 'ann', tier: 'free', base: -100, model: 'video' },
      { atMs: 4766, runMs: 3000, member: 'mort', tier: 'free', base: 0, model: 'model' },
    ]);
    const outcomes = ['', 'aging.clock=job'].map((name) => ({
      name,
      simulation: simulate(workload, withSettings(defaultRules, name)),
    }));
    expect(outcomes.map(({ simulation }) => simulation.ran.length)).toEqual([3, 3]);
    expect(reportOf(outcomes, defaultRules)).toMatch(/^batch ann( +\S+){14}$/m);
  });
});
