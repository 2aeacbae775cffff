import { beforeEach, describe, expect, test } from '@jest/globals';
import { decideAsItStands } from '../../src/policy/decide.ts';
import { jobId, memberId, type WaitingJob } from '../../src/policy/job.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { applyEvent, type LedgerEvent } from '../../src/policy/ledger-event.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob } from '../support/builders.ts';

const second = 1000;
const minute = 60 * second;
let ledger: Ledger;
let a1: WaitingJob;
let b1: WaitingJob;

beforeEach(() => {
  ledger = new Ledger(defaultRules);
  a1 = aJob({ id: 'a1', member: 'a' });
  b1 = aJob({ id: 'b1', member: 'b' });
});

/** Tells the ledger what happened to one job after another. */
function tell(...events: LedgerEvent[]): void {
  for (const event of events) applyEvent(ledger, event);
}

const arrive = (job: WaitingJob, atMs = 0): LedgerEvent => ({ kind: 'arrive', atMs, job });
const wake = (job: WaitingJob, atMs: number): LedgerEvent => ({ kind: 'wake', atMs, job });
const remove = (job: WaitingJob, atMs = 0): LedgerEvent => ({ kind: 'remove', atMs, job });
const end = (job: WaitingJob, atMs: number, usedMs: number): LedgerEvent => {
  return { kind: 'end', atMs, job, usedMs };
};
const dispatch = (job: WaitingJob, atMs: number, ...passedOver: string[]): LedgerEvent => {
  return { kind: 'dispatch', atMs, job, passedOver: passedOver.map(memberId) };
};
const back = (
  job: WaitingJob,
  atMs: number,
  usedMs: number,
  eligibleAtMs: number,
): LedgerEvent => ({ kind: 'back', atMs, job, usedMs, eligibleAtMs });

const waiting = (): string[] => [...ledger.jobs.keys()];
const tagOf = (member: string) => ledger.bands.get('normal')?.lanes.get(memberId(member))?.books;

describe('an event', () => {
  test('of a job that arrives lets it wait', () => {
    tell(arrive(a1), arrive(b1, 5));
    expect(waiting()).toEqual(['a1', 'b1']);
    expect(ledger.nowMs).toBe(5);
  });

  test('of a job that is taken away lets it wait no longer', () => {
    tell(arrive(a1), arrive(b1), remove(a1));
    expect(waiting()).toEqual(['b1']);
  });

  test('of a dispatch gives the GPU to the job, with those it passed over', () => {
    tell(arrive(a1), arrive(b1), dispatch(b1, 7, 'a'));
    expect(waiting()).toEqual(['a1']);
    expect(ledger.run).toMatchObject({ job: b1, startedMs: 7, passedOver: ['a'] });
  });

  test('of an end charges the run and those it passed over', () => {
    tell(arrive(a1), arrive(b1), arrive(aJob({ member: 'b' })));
    tell(dispatch(b1, 0, 'a'), end(b1, minute, minute));
    expect(ledger.run).toBeNull();
    expect(tagOf('a')).toEqual({ startTagMs: 0, passedMs: minute });
    expect(tagOf('b')).toEqual({ startTagMs: minute, passedMs: 0 });
  });

  test('of a run that goes back lets it wait out its backoff, at its place', () => {
    tell(arrive(a1), dispatch(a1, 0), back(a1, second, second, minute));
    expect(ledger.isInBackoff(a1.id)).toBe(true);
    expect(ledger.inBackoff).toBe(1);
    expect(tagOf('a')).toEqual({ startTagMs: second, passedMs: 0 });
    expect(decideAsItStands(ledger, null, 0)).toEqual({ kind: 'idle', untilMs: minute });
  });

  test.each(['wake', 'arrive'] as const)('of kind %s ends a backoff, however long', (kind) => {
    tell(arrive(a1), dispatch(a1, 0), back(a1, second, second, minute));
    tell({ kind, atMs: 2 * second, job: a1 });
    expect(ledger.inBackoff).toBe(0);
    expect(ledger.isInBackoff(a1.id)).toBe(false);
    expect(ledger.jobs.get(a1.id)).toEqual({ ...a1, eligibleAtMs: 0 });
    expect(decideAsItStands(ledger, null, 0)).toMatchObject({
      kind: 'run',
      pick: { band: 'normal' },
    });
  });
});

describe('an event that does not fit, because what came before it was lost,', () => {
  test('wakes nobody where nobody is in backoff', () => {
    tell(arrive(a1), wake(a1, 5), wake(b1, 6));
    expect(waiting()).toEqual(['a1']);
    expect(ledger.nowMs).toBe(6);
    expect(ledger.isInBackoff(jobId('b1'))).toBe(false);
  });

  test('gives the GPU to a job that nobody knew', () => {
    tell(dispatch(a1, 5));
    expect(ledger.run?.job.id).toBe('a1');
    expect(ledger.jobs.size).toBe(0);
  });

  test('ends the run that has the GPU when another gets it', () => {
    tell(arrive(a1), arrive(aJob({ member: 'a' })), arrive(b1));
    tell(dispatch(a1, 0), dispatch(b1, minute));
    expect(ledger.run?.job.id).toBe('b1');
    expect(tagOf('a')).toEqual({ startTagMs: minute, passedMs: 0 });
  });

  test('dispatches a job in backoff all the same', () => {
    tell(arrive(a1), dispatch(a1, 0), back(a1, second, second, minute), dispatch(a1, 2 * second));
    expect(ledger.run?.job.id).toBe('a1');
    expect(ledger.inBackoff).toBe(0);
  });

  test('takes away a job that ended without having run', () => {
    tell(arrive(a1), arrive(b1), dispatch(b1, 0), end(a1, second, second));
    expect(waiting()).toEqual([]);
    expect(ledger.run?.job.id).toBe('b1');
  });

  test('lets a job wait that goes back without having run', () => {
    tell(back(a1, second, second, minute));
    expect(ledger.isInBackoff(a1.id)).toBe(true);
    expect(tagOf('a')).toEqual({ startTagMs: 0, passedMs: 0 });
  });
});

describe('asking as if the run had ended', () => {
  test('while nothing runs asks about things as they are', () => {
    tell(arrive(a1));
    expect(ledger.asIfEnded(minute, minute, () => waiting())).toEqual(['a1']);
    expect(ledger.nowMs).toBe(0);
  });

  test('counts the run, and leaves it running', () => {
    const a2 = aJob({ id: 'a2', member: 'a' });
    tell(arrive(a1), arrive(a2), arrive(b1), dispatch(a1, 0));
    const ask = () => decideAsItStands(ledger, null, minute);
    expect(ledger.asIfEnded(minute, minute, ask)).toMatchObject({ pick: { job: { id: 'b1' } } });
    expect(ledger.run?.job.id).toBe('a1');
    expect(tagOf('a')).toEqual({ startTagMs: 0, passedMs: 0 });
  });

  test('forgets nothing of a band that the end would leave with nothing to do', () => {
    const a2 = aJob({ id: 'a2', member: 'a', arrivalMs: minute });
    tell(arrive(a1), arrive(b1), dispatch(a1, 0), end(a1, minute, minute));
    tell(arrive(a2, minute), dispatch(a2, minute), remove(b1));
    const before = ledger.state();
    expect(before.bands.normal).toMatchObject({ prompt: ['a'], finishTagMs: { a: minute } });
    const found = ledger.asIfEnded(2 * minute, minute, () => ledger.state());
    expect(found.bands.normal).toMatchObject({ prompt: [], finishTagMs: {} });
    expect(ledger.state()).toEqual(before);
  });

  test('leaves the ledger as it was when the question fails', () => {
    tell(arrive(a1), dispatch(a1, 0));
    const before = ledger.state();
    const ask = () => {
      throw new Error('no answer');
    };
    expect(() => ledger.asIfEnded(minute, minute, ask)).toThrow('no answer');
    expect(ledger.state()).toEqual(before);
  });
});
