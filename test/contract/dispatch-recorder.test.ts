import { beforeEach, describe, expect, test } from '@jest/globals';
import { DispatchRecorder } from '../../src/gateway/dispatch-recorder.ts';
import { decide } from '../../src/policy/decide.ts';
import type { WaitingJob } from '../../src/policy/job.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { applyEvent } from '../../src/policy/ledger-event.ts';
import type { LedgerEvent } from '../../src/policy/ledger-event.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import type { DispatchRecord, EndRecord } from '../../src/ports/dispatch-log.ts';
import type { Telemetry } from '../../src/ports/telemetry.ts';
import { aJob, type JobFacts } from '../support/builders.ts';

const minute = 60_000;

type OrderChange = Parameters<Telemetry['orderChanged']>[0];

let ledger: Ledger;
let residentModel: string | null;
let records: (DispatchRecord | EndRecord)[];
let changes: OrderChange[];
let recorder: DispatchRecorder;

beforeEach(() => {
  ledger = new Ledger(defaultRules);
  residentModel = 'model';
  records = [];
  changes = [];
  recorder = new DispatchRecorder({
    residentModel: () => residentModel,
    log: { add: (record) => void records.push(record) },
    telemetry: { orderChanged: (fact) => void changes.push(fact) },
  });
});

function happen(event: LedgerEvent): void {
  recorder.before(event, ledger);
  applyEvent(ledger, event);
}

function arrive(id: string, facts: JobFacts = {}): void {
  const job = aJob({ id, ...facts });
  happen({ kind: 'arrive', atMs: job.arrivalMs, job });
}

/** Dispatches what the policy picks. */
function dispatch(atMs: number): WaitingJob {
  const decision = decide(ledger, residentModel, atMs);
  if (decision.kind !== 'run') throw new Error(`nothing runs at ${atMs}`);
  const { job, passedOver } = decision.pick;
  happen({ kind: 'dispatch', atMs, job, passedOver });
  return job;
}

function end(job: WaitingJob, atMs: number, usedMs: number): void {
  happen({ kind: 'end', atMs, job, usedMs });
}

const dispatchRecord = (): DispatchRecord => {
  const last = records.findLast((record) => record.kind === 'dispatch');
  if (last?.kind !== 'dispatch') throw new Error('no dispatch was recorded');
  return last;
};

describe('a dispatch', () => {
  test('is recorded with the winner’s terms, the best loser of each band and who waits', () => {
    arrive('chat', { member: 'mort', tier: 'pro', base: 100 });
    arrive('other', { member: 'ann', base: 100, model: 'elsewhere' });
    arrive('late', { member: 'ann', base: 100, model: 'elsewhere' });
    arrive('film', { member: 'ann', base: -100 });
    dispatch(2 * minute);
    const record = dispatchRecord();
    expect(record).toMatchObject({
      kind: 'dispatch',
      atMs: 2 * minute,
      turnMs: 0,
      passedOver: 0,
      waiting: { interactive: 2, normal: 0, batch: 1 },
      residentModel: 'model',
      isSwap: false,
      displaced: {},
    });
    expect(record.winner).toEqual({
      id: 'chat',
      member: 'mort',
      tier: 'pro',
      band: 'interactive',
      base: 100,
      model: 'model',
      arrivalMs: 0,
      score: { band: 100, tier: 1, affinity: 10, aging: 2, effective: 113 },
    });
    expect(Object.keys(record.losers)).toEqual(['interactive', 'batch']);
    expect(record.losers.interactive).toMatchObject({
      id: 'other',
      member: 'ann',
      score: { band: 100, tier: 0, affinity: 0, aging: 2, effective: 102 },
    });
    expect(record.losers.batch).toMatchObject({ id: 'film', score: { effective: -88 } });
  });

  test('says that it swaps when the winner’s model is not the one in memory, or nobody knows', () => {
    arrive('a', { model: 'elsewhere' });
    end(dispatch(0), minute, minute);
    expect(dispatchRecord().isSwap).toBe(true);
    residentModel = null;
    arrive('b', { arrivalMs: 2 * minute });
    dispatch(2 * minute);
    expect(dispatchRecord()).toMatchObject({ isSwap: true, residentModel: null });
  });

  test('by points, before another member’s turn, tells how far ahead and of whom', () => {
    arrive('a1', { member: 'a' });
    arrive('b1', { member: 'b' });
    arrive('a2', { member: 'a', base: 40 });
    end(dispatch(0), 10 * minute, 10 * minute);
    arrive('a3', { member: 'a', base: 40, arrivalMs: 10 * minute });
    expect(dispatch(10 * minute).id).toBe('a3');
    expect(dispatchRecord()).toMatchObject({ turnMs: 10 * minute, passedOver: 1 });
  });

  test('of a job nobody knew, or while another runs, leaves no record', () => {
    const unknown = aJob({ id: 'unknown' });
    recorder.before({ kind: 'dispatch', atMs: 1, job: unknown, passedOver: [] }, ledger);
    arrive('a');
    arrive('b');
    dispatch(2);
    const [b] = [...ledger.jobs.values()];
    recorder.before({ kind: 'dispatch', atMs: 3, job: b!, passedOver: [] }, ledger);
    expect(records.map(({ kind }) => kind)).toEqual(['dispatch']);
  });
});

describe('the job that would have gone without a term', () => {
  /** What makes the term decide; returns the time of the decision. */
  const cases = {
    aging: () => {
      arrive('film', { member: 'film', base: -100 });
      arrive('displaced', { member: 'chat', base: 100, arrivalMs: 201 * minute });
      return 201 * minute;
    },
    affinity: () => {
      arrive('displaced', { model: 'elsewhere' });
      arrive('warm', { arrivalMs: minute });
      return minute;
    },
    fairness: () => {
      arrive('a1', { member: 'a' });
      arrive('displaced', { member: 'a' });
      arrive('b1', { member: 'b', arrivalMs: 1 });
      end(dispatch(1), minute, minute);
      return minute + 1;
    },
    tier: () => {
      arrive('displaced', { member: 'a' });
      arrive('max', { member: 'b', tier: 'max', arrivalMs: 1 });
      return 1;
    },
  } as const;

  test.each(Object.entries(cases))(
    '%s: is named, and told of when the run has ended',
    (term, set) => {
      const atMs = set();
      const winner = dispatch(atMs);
      expect(dispatchRecord().displaced).toEqual({ [term]: 'displaced' });
      const { band } = [...ledger.jobs.values()].find(({ id }) => String(id) === 'displaced')!;
      expect(changes).toEqual([]);
      end(winner, atMs + 5000, 4000);
      expect(changes).toEqual([{ term, band, delayedMs: 4000 }]);
      expect(records.at(-1)).toEqual({
        kind: 'end',
        atMs: atMs + 5000,
        id: winner.id,
        usedMs: 4000,
        loadMs: 0,
      });
    },
  );

  test('is told of when the run goes back to the queue, too, and only once', () => {
    const atMs = cases.tier();
    const job = dispatch(atMs);
    happen({ kind: 'back', atMs: atMs + 300, job, usedMs: 300, eligibleAtMs: atMs + 10_000 });
    expect(changes).toEqual([{ term: 'tier', band: 'normal', delayedMs: 300 }]);
    end(dispatch(atMs + 300), atMs + 400, 100);
    expect(changes).toHaveLength(1);
    expect(records.map(({ kind }) => kind)).toEqual(['dispatch', 'back', 'dispatch', 'end']);
  });

  test('is not told of by the end of another run', () => {
    const atMs = cases.tier();
    dispatch(atMs);
    recorder.before({ kind: 'end', atMs, job: aJob({ id: 'other' }), usedMs: 7 }, ledger);
    expect(changes).toEqual([]);
  });
});

describe('a load', () => {
  test('of the running job’s model is part of its run, and never more than it', () => {
    arrive('a', { model: 'elsewhere' });
    const job = dispatch(0);
    recorder.loaded('elsewhere', 700);
    recorder.loaded('another', 50);
    end(job, 1000, 1000);
    expect(records.at(-1)).toMatchObject({ usedMs: 1000, loadMs: 700 });
    arrive('b', { model: 'elsewhere', arrivalMs: 1000 });
    const next = dispatch(1000);
    recorder.loaded('elsewhere', 9000);
    end(next, 2000, 1000);
    expect(records.at(-1)).toMatchObject({ usedMs: 1000, loadMs: 1000 });
  });

  test('of the run before does not count again', () => {
    arrive('a', { model: 'elsewhere' });
    arrive('b', { model: 'elsewhere' });
    const job = dispatch(0);
    recorder.loaded('elsewhere', 700);
    end(job, 1000, 1000);
    end(dispatch(1000), 2000, 1000);
    expect(records.at(-1)).toMatchObject({ id: 'b', loadMs: 0 });
  });
});
