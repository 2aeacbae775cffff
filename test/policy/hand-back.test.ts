import { beforeEach, describe, expect, test } from '@jest/globals';
import { decide } from '../../src/policy/decide.ts';
import { jobId, memberId } from '../../src/policy/job.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob, rulesWith, type JobFacts } from '../support/builders.ts';

const rules = rulesWith({ aging: { ...defaultRules.aging, hold: { seconds: 0, share: 0 } } });
const second = 1000;
const minute = 60 * second;
let ledger: Ledger;

beforeEach(() => {
  ledger = new Ledger(rules);
});

/** Arrivals, each named after its job. */
function arrive(id: string, facts: JobFacts = {}): void {
  ledger.arrive(aJob({ id, ...facts }));
}

/** Gives the GPU to the pick and tells which job it was. */
function start(nowMs: number, residentModel: string | null = 'model'): string | undefined {
  const decision = decide(ledger, residentModel, nowMs);
  return decision.kind === 'run' ? ledger.dispatch(decision.pick, nowMs).job.id : undefined;
}

const booksOf = (band: string) => ledger.bands.get(band)!.books;
const laneOf = (member: string, band = 'normal') =>
  ledger.bands.get(band)!.lanes.get(memberId(member))?.books;

describe('a run that goes back to the queue', () => {
  test('keeps its arrival and its place, and is charged what it used', () => {
    arrive('a1', { member: 'a' });
    arrive('b1', { member: 'b', arrivalMs: 1 });
    start(1);
    ledger.handBack(5 * second, 4 * second);
    expect(ledger.jobs.get(jobId('a1'))?.arrivalMs).toBe(0);
    expect(laneOf('a')).toEqual({ startTagMs: 4 * second, passedMs: 0 });
    expect(start(5 * second)).toBe('b1');
  });

  test('restores the clock of its band to what it was at its dispatch', () => {
    arrive('a1');
    start(minute);
    arrive('b1', { member: 'b', arrivalMs: 2 * minute });
    expect(booksOf('normal').clockMs).toBe(2 * minute);
    ledger.handBack(3 * minute, 2 * minute);
    expect(booksOf('normal').clockMs).toBe(0);
  });

  test('keeps how long its lane was passed over', () => {
    arrive('b1', { member: 'b', model: 'other' });
    arrive('a1', { member: 'a', arrivalMs: 1 });
    start(1);
    ledger.end(30 * second, 30 * second);
    expect(start(30 * second)).toBe('b1');
    ledger.handBack(31 * second, second);
    expect(laneOf('b')).toEqual({ startTagMs: second, passedMs: 30 * second });
  });

  test('with backoff may not run before its time, but keeps its lane', () => {
    arrive('a1', { member: 'a' });
    start(0);
    ledger.handBack(second, second, 10 * second);
    expect(decide(ledger, null, 2 * second)).toEqual({ kind: 'idle', untilMs: 10 * second });
    expect(laneOf('a')).toEqual({ startTagMs: second, passedMs: 0 });
    arrive('b1', { member: 'b', arrivalMs: 3 * second });
    expect(start(3 * second)).toBe('b1');
    ledger.end(12 * second, 9 * second);
    expect(start(12 * second)).toBe('a1');
  });

  test('takes its lane back when another job of its member has opened it meanwhile', () => {
    arrive('a1', { member: 'a' });
    start(0);
    arrive('a2', { member: 'a', arrivalMs: second });
    ledger.handBack(5 * second, 5 * second);
    expect(laneOf('a')).toEqual({ startTagMs: 5 * second, passedMs: 0 });
    expect(start(5 * second)).toBe('a1');
  });
});
