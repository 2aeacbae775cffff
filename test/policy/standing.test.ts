import { describe, expect, test } from '@jest/globals';
import { decide } from '../../src/policy/decide.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { standingOf } from '../../src/policy/standing.ts';
import { aJob } from '../support/builders.ts';

const minute = 60_000;

describe('where a job stands', () => {
  test('is its claim in four terms, with the clock that counts and its turn', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(aJob({ id: 'a1', member: 'a', tier: 'pro' }));
    ledger.arrive(aJob({ id: 'a2', member: 'a', tier: 'pro' }));
    ledger.arrive(aJob({ id: 'b1', member: 'b' }));
    const decision = decide(ledger, 'model', 0);
    if (decision.kind !== 'run') throw new Error('a job waits');
    ledger.dispatch(decision.pick, 0);
    ledger.end(3 * minute, 3 * minute);
    const a2 = [...ledger.jobs.values()].find((job) => (job.id as string) === 'a2')!;
    expect(standingOf(ledger, a2, 'model', 5 * minute)).toEqual({
      score: { band: 0, tier: 1, affinity: 10, aging: 2, effective: 13 },
      agingSinceMs: 3 * minute,
      agingSince: 'band',
      turnMs: 2 * minute,
      waitedMs: 5 * minute,
    });
  });

  test('starts at its own arrival while its band has not run since', () => {
    const ledger = new Ledger(defaultRules);
    ledger.arrive(aJob({ arrivalMs: minute }));
    const [a1] = [...ledger.jobs.values()];
    expect(standingOf(ledger, a1!, null, 0)).toEqual({
      score: { band: 0, tier: 0, affinity: 0, aging: 0, effective: 0 },
      agingSinceMs: minute,
      agingSince: 'arrival',
      turnMs: 0,
      waitedMs: 0,
    });
  });

  test('is nowhere for a job that does not wait', () => {
    const ledger = new Ledger(defaultRules);
    expect(() => standingOf(ledger, aJob({ id: 'x' }), null, 0)).toThrow('job x does not wait');
    expect(() => standingOf(ledger, aJob({ id: 'y', band: 'z' }), null, 0)).toThrow('job y');
  });
});
