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

describe('arrival', () => {
  test('in a lane that was empty starts it at V, or at what its member still owes', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    arrive('b1', { member: 'b' });
    start(0);
    ledger.end(60 * second, 60 * second);
    expect(laneOf('a')).toEqual({ startTagMs: 60 * second, passedMs: 0 });
    start(60 * second);
    ledger.end(70 * second, 10 * second);
    start(70 * second);
    expect(booksOf('normal').virtualMs).toBe(60 * second);
    arrive('b2', { member: 'b', arrivalMs: 71 * second });
    arrive('c1', { member: 'c', arrivalMs: 71 * second });
    expect(laneOf('b')).toEqual({ startTagMs: 60 * second, passedMs: 0 });
    expect(laneOf('c')).toEqual({ startTagMs: 60 * second, passedMs: 0 });
  });

  test('in a band with nothing waiting starts its clock, and no later one does', () => {
    arrive('a1', { arrivalMs: 5 * minute });
    arrive('a2', { arrivalMs: 9 * minute });
    expect(booksOf('normal').clockMs).toBe(5 * minute);
  });

  test('of an old job in a band with nothing waiting starts the clock no earlier than its last run', () => {
    arrive('a1', { arrivalMs: minute });
    start(minute);
    ledger.end(2 * minute, minute);
    arrive('old', { arrivalMs: 0 });
    expect(booksOf('normal').clockMs).toBe(2 * minute);
  });

  test('of a job that waits or runs already changes nothing', () => {
    arrive('a1');
    arrive('a1', { base: 100 });
    expect(ledger.jobs.get(jobId('a1'))?.base).toBe(0);
    start(0);
    arrive('a1');
    expect(ledger.jobs.size).toBe(0);
  });

  test('in a band that the rules do not name is refused', () => {
    expect(() => arrive('a1', { band: 'urgent' })).toThrow('the rules name no band urgent');
  });
});

describe('dispatch', () => {
  test('raises V to the least S of the lanes that wait', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    start(0);
    ledger.end(30 * second, 30 * second);
    start(30 * second);
    expect(booksOf('normal').virtualMs).toBe(30 * second);
  });

  test('ahead of its turn raises V no further than the lead could have been', () => {
    arrive('low1', { member: 'low', base: -1000 });
    arrive('a1', { member: 'a', base: -100 });
    arrive('a2', { member: 'a', base: -100 });
    start(0);
    ledger.end(1000 * second, 1000 * second);
    expect(start(1000 * second)).toBe('a2');
    expect(booksOf('batch').virtualMs).toBe((1000 - 720) * second);
  });

  test('remembers the lanes whose turn had come before, by S and then arrival', () => {
    arrive('b1', { member: 'b', model: 'other' });
    arrive('a1', { member: 'a' });
    arrive('c1', { member: 'c', model: 'other' });
    expect(start(0)).toBe('a1');
    expect(ledger.run?.passedOver).toEqual(['b']);
  });

  test('of a job that does not wait, or beside a running one, is refused', () => {
    arrive('a1');
    const pick = { band: 'normal', job: aJob(), passedOver: [] };
    expect(() => ledger.dispatch(pick, 0)).toThrow('does not wait');
    start(0);
    arrive('a2');
    const second = { band: 'normal', job: ledger.jobs.get(jobId('a2'))!, passedOver: [] };
    expect(() => ledger.dispatch(second, 0)).toThrow('job a1 has the GPU');
  });
});

describe('end', () => {
  test('charges the run to its member by weight, rounded up', () => {
    arrive('p1', { member: 'pro', tier: 'pro' });
    arrive('p2', { member: 'pro', tier: 'pro' });
    start(0);
    expect(ledger.end(1001, 1001)).toBe(1001);
    expect(laneOf('pro')?.startTagMs).toBe(668);
  });

  test('of a run that failed at once charges 100 ms', () => {
    arrive('a1');
    arrive('a2');
    start(0);
    expect(ledger.end(3, 3)).toBe(100);
    expect(laneOf('member')?.startTagMs).toBe(100);
  });

  test('moves the clock of its band 50 seconds on for each GPU-second, never past now', () => {
    arrive('film1', { base: -100 });
    arrive('film2', { base: -100 });
    arrive('chat', { member: 'chat', base: 100, arrivalMs: 198 * minute });
    arrive('chat2', { member: 'chat', base: 100, arrivalMs: 198 * minute });
    ledger.dispatch(
      { band: 'batch', job: ledger.jobs.get(jobId('film1'))!, passedOver: [] },
      200 * minute,
    );
    ledger.end(200 * minute + 2 * second, 2 * second);
    expect(booksOf('batch').clockMs).toBe(100 * second);
    ledger.dispatch(
      { band: 'batch', job: ledger.jobs.get(jobId('film2'))!, passedOver: [] },
      210 * minute,
    );
    ledger.end(215 * minute, 5 * minute);
    expect(booksOf('batch').clockMs).toBe(215 * minute);
  });

  test('counts what a band has earned up to twice the points between the extremes', () => {
    arrive('film1', { base: -100 });
    arrive('film2', { base: -100 });
    const threeDays = 72 * 60 * minute;
    start(threeDays);
    ledger.end(threeDays + second, second);
    expect(booksOf('batch').clockMs).toBe(threeDays - 25_440 * second + 50 * second);
  });

  test('counts against the lanes passed over that still wait, and starts its own count anew', () => {
    arrive('b1', { member: 'b', model: 'other' });
    arrive('c1', { member: 'c', model: 'other' });
    arrive('a1', { member: 'a', arrivalMs: 1 });
    arrive('a2', { member: 'a', arrivalMs: 1 });
    expect(start(1)).toBe('a1');
    ledger.remove(jobId('c1'));
    arrive('c2', { member: 'c', model: 'other', arrivalMs: 2 });
    ledger.end(30 * second, 30 * second);
    expect(laneOf('b')).toEqual({ startTagMs: 0, passedMs: 30 * second });
    expect(laneOf('c')).toEqual({ startTagMs: 0, passedMs: 0 });
    expect(laneOf('a')).toEqual({ startTagMs: 30 * second, passedMs: 0 });
  });

  test('counts nothing against a lane that has closed meanwhile', () => {
    arrive('b1', { member: 'b', model: 'other' });
    arrive('a1', { member: 'a', arrivalMs: 1 });
    const pick = {
      band: 'normal',
      job: ledger.jobs.get(jobId('a1'))!,
      passedOver: [memberId('gone')],
    };
    ledger.dispatch(pick, 1);
    ledger.end(30 * second, 30 * second);
    expect(laneOf('gone')).toBeUndefined();
  });

  test('of the last job of a band forgets its V and every debt', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    start(0);
    ledger.end(960 * second, 960 * second);
    start(960 * second);
    ledger.end(1920 * second, 960 * second);
    expect(booksOf('normal').virtualMs).toBe(0);
    arrive('b1', { member: 'b', arrivalMs: 3000 * second });
    arrive('a3', { member: 'a', arrivalMs: 3000 * second });
    expect(laneOf('a')).toEqual(laneOf('b'));
  });

  test('while nothing runs does nothing', () => {
    expect(ledger.end(0, 500)).toBe(0);
    expect(ledger.handBack(0, 500)).toBe(0);
  });
});

describe('removal', () => {
  test('changes only the head of its lane', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    arrive('b1', { member: 'b' });
    start(0);
    ledger.end(60 * second, 60 * second);
    const before = laneOf('a');
    arrive('a3', { member: 'a', arrivalMs: 60 * second });
    expect(ledger.remove(jobId('a2'))?.id).toBe('a2');
    expect(laneOf('a')).toEqual(before);
    ledger.remove(jobId('a3'));
    arrive('a4', { member: 'a', arrivalMs: 60 * second });
    expect(laneOf('a')).toEqual({ startTagMs: 60 * second, passedMs: 0 });
  });

  test('of the last job of a band that has nothing running forgets its debts', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    start(0);
    ledger.end(60 * second, 60 * second);
    ledger.remove(jobId('a2'));
    arrive('a3', { member: 'a', arrivalMs: 60 * second });
    expect(laneOf('a')).toEqual({ startTagMs: 0, passedMs: 0 });
  });

  test('of a job that does not wait does nothing', () => {
    expect(ledger.remove(jobId('nobody'))).toBeUndefined();
  });

  test('of a job in backoff takes it out of its lane', () => {
    arrive('a1');
    start(0);
    ledger.handBack(second, second, minute);
    expect(ledger.remove(jobId('a1'))?.id).toBe('a1');
    expect(ledger.jobs.size).toBe(0);
    expect(decide(ledger, null, minute)).toEqual({ kind: 'idle', untilMs: null });
  });

  test('of a lane in another band leaves the run alone', () => {
    arrive('b1', { member: 'b', model: 'other' });
    arrive('b2', { member: 'b', base: 100, model: 'other', arrivalMs: 2 });
    arrive('a1', { member: 'a', arrivalMs: 1 });
    const job = ledger.jobs.get(jobId('a1'))!;
    ledger.dispatch({ band: 'normal', job, passedOver: [memberId('b')] }, 3);
    ledger.remove(jobId('b2'));
    expect(ledger.run?.passedOver).toEqual(['b']);
    ledger.remove(jobId('b1'));
    expect(ledger.run?.passedOver).toEqual([]);
  });
});

describe('time', () => {
  test('that steps back counts as the last it was told', () => {
    arrive('a1', { arrivalMs: 10 * minute });
    start(5 * minute);
    expect(ledger.run?.startedMs).toBe(10 * minute);
    arrive('a2', { arrivalMs: 11 * minute });
    ledger.end(minute, second);
    expect(booksOf('normal').lastEndMs).toBe(11 * minute);
    expect(booksOf('normal').clockMs).toBe(11 * minute);
    expect(ledger.nowMs).toBe(11 * minute);
  });
});

describe('a ledger rebuilt from its jobs', () => {
  test('serves them from equal books, in their order and in the bands the rules now name', () => {
    arrive('b1', { member: 'b', arrivalMs: minute });
    arrive('a1', { member: 'a', base: -40, arrivalMs: 0 });
    const other = rulesWith({ bands: { batch: -40, normal: 0, interactive: 100 } });
    ledger = Ledger.rebuild(ledger.jobs.values(), other);
    expect([...ledger.jobs.values()].map((job) => [job.id, job.band])).toEqual([
      ['a1', 'batch'],
      ['b1', 'normal'],
    ]);
    expect(laneOf('a', 'batch')).toEqual({ startTagMs: 0, passedMs: 0 });
  });
});

describe('jobs of one moment', () => {
  test('are told apart by sequence, then by id', () => {
    arrive('c', { sequence: 7 });
    arrive('b', { sequence: 7 });
    arrive('a', { sequence: 8 });
    expect([start(0), ledger.end(1, 1), start(1), ledger.end(2, 1), start(2)]).toEqual([
      'b',
      100,
      'c',
      100,
      'a',
    ]);
  });
});

describe('a state whose jobs were taken away unseen', () => {
  test('is taken up without their lanes, and a band left with nothing forgets its debts', () => {
    arrive('a1', { member: 'a' });
    arrive('a2', { member: 'a' });
    arrive('b1', { member: 'b' });
    arrive('i1', { member: 'b', base: 100 });
    arrive('i2', { member: 'b', base: 100 });
    start(0);
    ledger.end(minute, minute);
    start(minute);
    const jobs = ledger.state().jobs.filter((job) => job.id === jobId('a1'));
    const taken = Ledger.from({ ...ledger.state(), run: null, jobs }, rules);
    expect([...taken.bands.get('normal')!.lanes.keys()]).toEqual(['a']);
    expect(taken.bands.get('interactive')!.state()).toMatchObject({ lanes: {}, finishTagMs: {} });
  });
});
