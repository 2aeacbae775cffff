import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Queue } from 'bullmq';
import type { Job } from 'bullmq';
import type { ClaimedJob, RunResult } from '../../src/ports/job-queue.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture, type TestWorker } from '../support/queue-fixture.ts';
import { RunGate } from '../support/run-gate.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
/** BullMQ's own queue on the same keys: hands that keep no journal. */
let bull: Queue;
let gate: RunGate;
let seen: TestWorker;
/** How the next runs of these jobs end; any other completes. */
let fates: Map<string, RunResult>;
const soon = { timeoutMs: 15_000 };
const backoff = {
  kind: 'retry',
  code: 'model_unavailable',
  message: 'x',
  delayMs: 60_000,
} as const;
const failed = { kind: 'failed', code: 'model_unavailable', message: 'x' } as const;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  bull = new Queue('gpu', { connection: fixture.admin, prefix: fixture.keys.pool });
  gate = new RunGate();
  fates = new Map();
  seen = await fixture.startWorker(async (job: ClaimedJob): Promise<RunResult> => {
    const fate = fates.get(job.id);
    fates.delete(job.id);
    if (fate !== undefined) return fate;
    await gate.pass();
    return { kind: 'completed' };
  });
});
afterEach(async () => {
  gate.open();
  await bull.close();
  await fixture.close();
});

async function submit(points: number): Promise<string> {
  const job = aNewJob(points);
  await fixture.queue.submit(job);
  return job.id;
}

/** Submits a job whose first run ends like this, and waits for that to be stored. */
async function submitAndRun(points: number, fate: RunResult): Promise<string> {
  const job = aNewJob(points);
  fates.set(job.id, fate);
  const before = seen.reports.length;
  await fixture.queue.submit(job);
  await ran(before + 1);
  return job.id;
}

/** Submits a job that has the GPU until the gate is opened. */
async function submitAndHold(): Promise<string> {
  gate.shut();
  const id = await submit(100);
  await eventually(() => gate.held === 1, { ...soon, what: 'a run to be held' });
  return id;
}

async function ran(count: number): Promise<void> {
  await eventually(() => seen.reports.length >= count, { ...soon, what: `${count} runs` });
  await eventually(async () => (await fixture.admin.llen(`${fixture.keys.queue}active`)) === 0, {
    ...soon,
    what: 'the last settlement',
  });
}

async function bullJob(id: string): Promise<Job> {
  const job = (await bull.getJob(id)) as Job | undefined;
  if (job === undefined) throw new Error(`BullMQ knows no job ${id}`);
  return job;
}

/** Lets everything run; the whole order of dispatch was this, and nothing is left. */
async function expectOrder(...order: string[]): Promise<void> {
  gate.open();
  await ran(order.length);
  expect(seen.dispatched).toEqual(order);
  expect(seen.errors).toEqual([]);
  for (const list of ['wait', 'paused', 'prioritized', 'active']) {
    expect(await fixture.admin.exists(`${fixture.keys.queue}${list}`)).toBe(0);
  }
}

describe('other hands that', () => {
  test('remove a waiting job: the others go on in their order', async () => {
    const held = await submitAndHold();
    const [b1, n1, n2, n3] = [
      await submit(-100),
      await submit(0),
      await submit(0),
      await submit(0),
    ];
    await (await bullJob(n1)).remove();
    await (await bullJob(n3)).remove();
    await expectOrder(held, n2, b1);
  });

  test('remove every waiting job of a band one by one: what comes later runs', async () => {
    const held = await submitAndHold();
    const [n1, n2] = [await submit(0), await submit(0)];
    await (await bullJob(n1)).remove();
    await (await bullJob(n2)).remove();
    const later = await submit(0);
    await expectOrder(held, later);
  });

  test('remove one while the worker is idle: the next to come runs at once', async () => {
    const x = await submitAndRun(0, backoff);
    await (await bullJob(x)).remove();
    const later = await submit(0);
    await expectOrder(x, later);
  });

  test('promote a job from its backoff: it goes at its place, by its arrival', async () => {
    const x = await submitAndRun(-100, backoff);
    const held = await submitAndHold();
    const [b2, n1] = [await submit(-100), await submit(0)];
    await (await bullJob(x)).promote();
    await expectOrder(x, held, n1, x, b2);
  });

  test('promote all jobs in backoff: each goes at its place', async () => {
    const x = await submitAndRun(-100, backoff);
    const y = await submitAndRun(0, backoff);
    const held = await submitAndHold();
    const [b2, n2] = [await submit(-100), await submit(0)];
    await bull.promoteJobs();
    await expectOrder(x, y, held, y, n2, x, b2);
  });

  test('promote a job while the worker is idle: it runs at once', async () => {
    const x = await submitAndRun(-100, backoff);
    await (await bullJob(x)).promote();
    await expectOrder(x, x);
  });

  test('shorten a backoff: the job goes at its place', async () => {
    const x = await submitAndRun(-100, backoff);
    const held = await submitAndHold();
    const [b2, n1] = [await submit(-100), await submit(0)];
    await (await bullJob(x)).changeDelay(0);
    await expectOrder(x, held, n1, x, b2);
  });

  test('change priorities: the policy has the word all the same', async () => {
    const held = await submitAndHold();
    const [b1, n1, n2, n3] = [
      await submit(-100),
      await submit(0),
      await submit(0),
      await submit(0),
    ];
    await (await bullJob(b1)).changePriority({ priority: 0 });
    await (await bullJob(n3)).changePriority({ priority: 1, lifo: true });
    await (await bullJob(n2)).changePriority({ priority: 1 });
    await (await bullJob(n1)).changePriority({ priority: 2_000_000 });
    await expectOrder(held, n1, n2, n3, b1);
  });

  test('retry failed jobs: each goes to the tail of its class, like a new one', async () => {
    const f = await submitAndRun(-100, failed);
    const g = await submitAndRun(0, failed);
    const held = await submitAndHold();
    const [b1, n1] = [await submit(-100), await submit(0)];
    await bull.retryJobs({ state: 'failed' });
    const [b2, n2] = [await submit(-100), await submit(0)];
    gate.open();
    await ran(9);
    expect(seen.dispatched.slice(0, 4)).toEqual([f, g, held, n1]);
    // A retry past Berth arrives when it is noticed, which is before the next dispatch.
    expect(seen.dispatched.slice(4)).toEqual([n2, g, b1, b2, f]);
  });

  test('retry completed jobs: their requests are gone, so they stay ended', async () => {
    const c = await submit(0);
    await ran(1);
    const held = await submitAndHold();
    const n1 = await submit(0);
    await bull.retryJobs({ state: 'completed' });
    await expectOrder(c, held, n1);
    expect(await (await bullJob(c)).getState()).toBe('completed');
  });

  test('drain the queue: nothing that waited runs, what comes later does', async () => {
    const x = await submitAndRun(0, backoff);
    const held = await submitAndHold();
    await submit(-100);
    await submit(0);
    await bull.drain();
    const later = await submit(-100);
    await expectOrder(x, held, later);
    expect(await bull.getDelayedCount()).toBe(1);
  });

  test('drain jobs in backoff as well: they never run again', async () => {
    const x = await submitAndRun(0, backoff);
    const held = await submitAndHold();
    await submit(0);
    await bull.drain(true);
    const later = await submit(-100);
    await expectOrder(x, held, later);
    expect(await bull.getDelayedCount()).toBe(0);
  });

  test("add jobs of their own: nobody's, in the middle, after those that wait", async () => {
    const held = await submitAndHold();
    const [b1, n1] = [await submit(-100), await submit(0)];
    const plain = await bull.add('foreign', {});
    const ranked = await bull.add('foreign', {}, { priority: 1 });
    const i1 = await submit(100);
    const later = await bull.add('foreign', {}, { delay: 60_000 });
    await expectOrder(held, i1, n1, String(plain.id), String(ranked.id), b1);
    expect(await bull.getDelayedCount()).toBe(1);
    await (await bullJob(String(later.id))).promote();
    await ran(7);
    expect(seen.dispatched.at(-1)).toBe(later.id);
  });

  test('pause the queue: nothing is dispatched until they resume it, then in order', async () => {
    const held = await submitAndHold();
    const [b1, n1] = [await submit(-100), await submit(0)];
    await bull.pause();
    gate.open();
    await ran(1);
    const i1 = await submit(100);
    const foreign = await bull.add('foreign', {});
    await seen.worker.stop(50).catch(() => undefined);
    expect(seen.dispatched).toEqual([held]);
    seen = await fixture.startWorker(async () => Promise.resolve({ kind: 'completed' }));
    await bull.resume();
    await expectOrder(i1, n1, String(foreign.id), b1);
  });

  test('pause and resume an idle queue do not keep a later job waiting', async () => {
    await bull.pause();
    const [b1, i1] = [await submit(-100), await submit(100)];
    await bull.resume();
    await expectOrder(i1, b1);
  });
});
