import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { PlanKeeper } from '../../src/gateway/plan-keeper.ts';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { decide } from '../../src/policy/decide.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import type { Estimate } from '../../src/policy/plan.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob } from '../support/builders.ts';

const second = 1000;

let ledger: Ledger;
let published: { view: QueueView; at: number }[];
let missed: number[];
let errors: Error[];
/** What a look at one job's duration costs, and what such looks have cost: ms of this process' time. */
let costMs: number;
let spentMs: number;
let publishing: () => Promise<void>;
let nowMs: () => Promise<number>;
let keeper: PlanKeeper;

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['performance'], now: 0 });
  spentMs = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => Date.now() + spentMs);
  ledger = new Ledger(defaultRules);
  published = [];
  missed = [];
  errors = [];
  costMs = 0;
  publishing = async () => Promise.resolve();
  nowMs = async () => Promise.resolve(Date.now());
  keeper = new PlanKeeper({
    ledger: () => ledger,
    version: () => '7-a',
    residentModel: async () => Promise.resolve('model'),
    duration: (): Estimate => {
      spentMs += costMs;
      return { p50Ms: 10 * second, p90Ms: 20 * second };
    },
    nowMs: async () => nowMs(),
    publish: async (view) => {
      published.push({ view, at: Date.now() });
      await publishing();
    },
    telemetry: { etaMissed: ({ errorMs }) => void missed.push(errorMs) },
    onError: (error) => void errors.push(error),
  });
});
afterEach(() => {
  keeper.stop();
  jest.restoreAllMocks();
  jest.useRealTimers();
});

const pass = async (ms: number): Promise<void> => jest.advanceTimersByTimeAsync(ms);
const arrive = (id: string, model = 'model'): void => {
  ledger.arrive(aJob({ id, model, arrivalMs: Date.now() }));
};

describe('a plan', () => {
  test('follows a change within a tenth of a second, however many changes there are', async () => {
    for (let index = 0; index < 50; index += 1) {
      arrive(`job-${index}`);
      keeper.changed();
      await pass(1);
    }
    expect(published).toEqual([]);
    await pass(50);
    expect(published).toHaveLength(1);
    expect(published[0]?.view.waiting).toHaveLength(50);
    expect(published[0]?.view).toMatchObject({ version: '7-a', resident_model: 'model' });
  });

  test('is made again every two seconds without a change, once there was one', async () => {
    await pass(10 * second);
    expect(published).toEqual([]);
    keeper.changed();
    await pass(6150);
    expect(published.map(({ at }) => at)).toEqual([10_100, 12_100, 14_100, 16_100]);
  });

  test('that is asked for is made at once', async () => {
    arrive('a');
    const { view } = await keeper.plan();
    expect(view.waiting.map(({ id }) => id)).toEqual(['a']);
    expect(published).toHaveLength(1);
  });

  test('takes no more than a tenth of the time, though something changes all the while', async () => {
    for (let index = 0; index < 20; index += 1) arrive(`job-${index}`);
    costMs = 15;
    for (let elapsedMs = 0; elapsedMs < 60 * second; elapsedMs += 10) {
      keeper.changed();
      await pass(10);
    }
    expect(published.length).toBeGreaterThan(15);
    expect(spentMs).toBeLessThanOrEqual(0.1 * (60 * second + spentMs));
  });

  test('that is slow to be published is not made twice at once, and the change meanwhile is not lost', async () => {
    let release: () => void = () => undefined;
    publishing = async () => new Promise((resolve) => (release = resolve));
    arrive('a');
    keeper.changed();
    await pass(100);
    arrive('b');
    keeper.changed();
    await pass(5 * second);
    expect(published).toHaveLength(1);
    publishing = async () => Promise.resolve();
    release();
    await pass(100);
    expect(published).toHaveLength(2);
    expect(published[1]?.view.waiting).toHaveLength(2);
  });

  test('that fails is told of and made again', async () => {
    publishing = async () => Promise.reject(new Error('away'));
    keeper.changed();
    await pass(100);
    expect(errors.map(({ message }) => message)).toEqual(['away']);
    publishing = async () => Promise.resolve();
    await pass(2 * second);
    expect(published).toHaveLength(2);
    expect(errors).toHaveLength(1);
  });

  test('is made no more after the end', async () => {
    keeper.changed();
    keeper.stop();
    keeper.changed();
    await pass(10 * second);
    expect(published).toEqual([]);
  });
});

describe('what a job was told first', () => {
  /** The running job and two that wait: 10 s and 20 s, as far as anybody knows. */
  beforeEach(async () => {
    for (const id of ['running', 'a', 'b']) arrive(id);
    const decision = decide(ledger, 'model', 0);
    if (decision.kind === 'run') ledger.dispatch(decision.pick, 0);
    await keeper.plan();
  });

  test('is compared with when it starts, once', () => {
    keeper.started('a', 13 * second);
    keeper.started('b', 18 * second);
    keeper.started('a', 99 * second);
    expect(missed).toEqual([3 * second, 2 * second]);
  });

  test('stands, whatever it is told later', async () => {
    ledger.arrive(aJob({ id: 'better', base: 100, arrivalMs: 5 * second }));
    nowMs = async () => Promise.resolve(5 * second);
    await keeper.plan();
    keeper.started('a', 20 * second);
    expect(missed).toEqual([10 * second]);
  });

  test('is forgotten with a job that was removed', async () => {
    const [a] = ledger.jobs.keys();
    ledger.remove(a!);
    await keeper.plan();
    keeper.started('a', 13 * second);
    expect(missed).toEqual([]);
  });

  test('is nothing for a job that started before any plan', () => {
    keeper.started('unplanned', 1);
    expect(missed).toEqual([]);
  });
});
