import { beforeEach, describe, expect, test } from '@jest/globals';
import { bestLosers, decide, displacedBy } from '../../src/policy/decide.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';
import { standingOf } from '../../src/policy/standing.ts';
import { aJob, rulesWith, type JobFacts } from '../support/builders.ts';

const second = 1000;
const minute = 60 * second;
let ledger: Ledger;

beforeEach(() => {
  ledger = new Ledger(defaultRules);
});

function arrive(id: string, facts: JobFacts = {}): void {
  ledger.arrive(aJob({ id, ...facts }));
}

function next(nowMs: number, residentModel: string | null = null): string | undefined {
  const decision = decide(ledger, residentModel, nowMs);
  return decision.kind === 'run' ? decision.pick.job.id : undefined;
}

function run(
  nowMs: number,
  usedMs: number,
  residentModel: string | null = 'model',
): string | undefined {
  const decision = decide(ledger, residentModel, nowMs);
  if (decision.kind !== 'run') return decision.kind;
  ledger.dispatch(decision.pick, nowMs);
  ledger.end(nowMs + usedMs, usedMs);
  return decision.pick.job.id;
}

describe('a free GPU', () => {
  test('idles while nothing waits', () => {
    expect(decide(ledger, null, 0)).toEqual({ kind: 'idle', untilMs: null });
  });

  test('goes to the band with the highest claim, and by arrival between equal ones', () => {
    arrive('batch', { base: -100 });
    arrive('chat', { base: 100, arrivalMs: 200 * minute });
    expect(next(200 * minute)).toBe('batch');
    arrive('chat2', { base: 101, arrivalMs: 200 * minute });
    expect(next(200 * minute)).toBe('chat2');
  });

  test('goes to the job whose turn it is, not to the one that made the claim', () => {
    arrive('a1', { member: 'a', base: 10 });
    arrive('a2', { member: 'a', base: 10 });
    arrive('b1', { member: 'b', base: 0 });
    expect(run(0, 900 * second)).toBe('a1');
    arrive('low', { member: 'c', base: -41, arrivalMs: 900 * second });
    expect(next(900 * second, 'model')).toBe('b1');
  });
});

describe('with the literal clock', () => {
  test('a job ages from its own arrival, whatever its band has run', () => {
    const literal: Rules = rulesWith({ aging: { ...defaultRules.aging, clock: 'job' } });
    ledger = new Ledger(literal);
    arrive('film1', { base: -100 });
    arrive('film2', { base: -100 });
    arrive('chat', { member: 'chat', base: 100, arrivalMs: 205 * minute });
    expect(run(205 * minute, 4 * minute)).toBe('film1');
    expect(next(209 * minute, 'model')).toBe('film2');
    expect(standingOf(ledger, [...ledger.jobs.values()][0]!, null, 209 * minute)).toMatchObject({
      agingSinceMs: 0,
      agingSince: 'arrival',
    });
  });
});

describe('the hold', () => {
  /** A producer that sends one 60 s job at a time against a backlog of 960 s jobs. */
  function producerReturns(afterMs: number): void {
    arrive('p1', { member: 'producer' });
    arrive('b1', { member: 'backlog' });
    arrive('b2', { member: 'backlog' });
    arrive('b3', { member: 'backlog' });
    expect(run(0, 60 * second)).toBe('p1');
    arrive('p2', { member: 'producer', arrivalMs: 60 * second + afterMs });
    expect(run(61 * second, 960 * second)).toBe('b1');
    expect(run(1021 * second, 60 * second)).toBe('p2');
  }

  test('waits for a producer whose next job came within a second the last time', () => {
    producerReturns(200);
    const decision = decide(ledger, 'model', 1081 * second);
    expect(decision).toMatchObject({
      kind: 'hold',
      untilMs: 1082 * second,
      pick: { job: { id: 'b2' } },
    });
    arrive('p3', { member: 'producer', arrivalMs: 1081 * second + 150 });
    expect(next(1081 * second + 150, 'model')).toBe('p3');
  });

  test('ends at its time, after which the pick goes', () => {
    producerReturns(200);
    expect(next(1082 * second, 'model')).toBe('b2');
  });

  test('is at most 2 % of the run that ended', () => {
    producerReturns(200);
    arrive('p3', { member: 'producer', arrivalMs: 1081 * second });
    expect(run(1081 * second, 10 * second)).toBe('p3');
    expect(decide(ledger, 'model', 1091 * second)).toMatchObject({ untilMs: 1091 * second + 200 });
  });

  test('is not for a producer that took longer than a second the last time', () => {
    producerReturns(1001);
    expect(next(1081 * second, 'model')).toBe('b2');
  });

  test('is forgotten by a slow return after a prompt one', () => {
    producerReturns(200);
    arrive('p3', { member: 'producer', arrivalMs: 1084 * second });
    expect(run(1084 * second, 60 * second)).toBe('p3');
    expect(next(1144 * second, 'model')).toBe('b2');
  });

  test('is not against a job of another band', () => {
    producerReturns(200);
    arrive('chat', { member: 'chat', base: 100, arrivalMs: 1081 * second });
    expect(next(1081 * second, 'model')).toBe('chat');
  });

  test('is not for a job that would not go first', () => {
    producerReturns(200);
    arrive('vip', { member: 'vip', base: 40, arrivalMs: 1081 * second });
    expect(next(1081 * second, 'model')).toBe('vip');
  });

  test('goes on against other members of the band, and is kept over a restart', () => {
    producerReturns(200);
    ledger = Ledger.from(ledger.state(), defaultRules);
    arrive('other', { member: 'backlog', arrivalMs: 1081 * second + 10 });
    expect(decide(ledger, 'model', 1081 * second + 10).kind).toBe('hold');
    arrive('elsewhere', { member: 'producer', base: -100, arrivalMs: 1081 * second + 20 });
    expect(decide(ledger, 'model', 1081 * second + 20).kind).toBe('hold');
  });
});

describe('what a term changed', () => {
  test('aging: the batch job that had waited long enough', () => {
    arrive('film', { member: 'film', base: -100 });
    arrive('chat', { member: 'chat', base: 100, arrivalMs: 201 * minute });
    const decision = decide(ledger, null, 201 * minute);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(decision.pick.job.id).toBe('film');
    expect(displacedBy(ledger, decision.pick, null)).toEqual({
      aging: expect.objectContaining({ id: 'chat' }),
    });
  });

  test('aging: the older of two jobs of one member', () => {
    arrive('old', { base: 0 });
    arrive('new', { base: 5, arrivalMs: 6 * minute });
    const decision = decide(ledger, null, 6 * minute);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(displacedBy(ledger, decision.pick, null)).toEqual({
      aging: expect.objectContaining({ id: 'new' }),
    });
  });

  test('affinity: the younger job whose model is resident', () => {
    arrive('cold', { model: 'other' });
    arrive('warm', { arrivalMs: minute });
    const decision = decide(ledger, 'model', minute);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(decision.pick.job.id).toBe('warm');
    expect(displacedBy(ledger, decision.pick, 'model')).toEqual({
      affinity: expect.objectContaining({ id: 'cold' }),
    });
  });

  test('fairness: the member that has had less', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    arrive('b1', { member: 'b', arrivalMs: 1 });
    run(1, minute);
    const decision = decide(ledger, 'model', minute + 1);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(decision.pick.job.id).toBe('b1');
    expect(displacedBy(ledger, decision.pick, 'model')).toEqual({
      fairness: expect.objectContaining({ id: 'a2' }),
    });
  });

  test('tier: the job that came first', () => {
    arrive('free', { member: 'a' });
    arrive('max', { member: 'b', tier: 'max', arrivalMs: 1 });
    const decision = decide(ledger, null, 1);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(decision.pick.job.id).toBe('max');
    expect(displacedBy(ledger, decision.pick, null)).toEqual({
      tier: expect.objectContaining({ id: 'free' }),
    });
  });

  test('nothing that may not run yet', () => {
    arrive('a1', { member: 'a' });
    run(0, 0);
    arrive('b1', { member: 'b', eligibleAtMs: minute });
    arrive('c1', { member: 'c' });
    const decision = decide(ledger, null, second);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(displacedBy(ledger, decision.pick, null)).toEqual({});
  });

  test('nothing, where nobody else waits or everybody else is gone', () => {
    arrive('only');
    const decision = decide(ledger, null, 0);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(displacedBy(ledger, decision.pick, null)).toEqual({});
    ledger.dispatch(decision.pick, 0);
    expect(displacedBy(ledger, decision.pick, null)).toEqual({});
  });
});

describe('the best loser', () => {
  test('of each band is the head whose turn it would be without the pick', () => {
    arrive('chat', { member: 'a', base: 100 });
    arrive('chat2', { member: 'b', base: 100 });
    arrive('chat3', { member: 'c', base: 100 });
    arrive('film', { member: 'a', base: -100 });
    const decision = decide(ledger, null, 0);
    if (decision.kind !== 'run') throw new Error('a job waits');
    expect(bestLosers(ledger, decision.pick, null)).toEqual({
      interactive: expect.objectContaining({ id: 'chat2' }),
      batch: expect.objectContaining({ id: 'film' }),
    });
  });
});
