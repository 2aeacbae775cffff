import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Queue } from 'bullmq';
import { QueueCare } from '../../src/adapters/redis/queue-care.ts';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';
import type { RunResult } from '../../src/ports/job-queue.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
const done = { kind: 'completed' } as const;
const soon = { timeoutMs: 8000 };

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
});
afterEach(async () => fixture.close());

async function submitAll(...points: number[]): Promise<string[]> {
  const jobs = points.map((value) => aNewJob(value));
  for (const job of jobs) await fixture.queue.submit(job);
  return jobs.map((job) => job.id);
}

describe('order', () => {
  test('more points go first, and equal points keep their arrival order', async () => {
    const [a, b, c, d] = await submitAll(-100, 0, 100, 0);
    const seen = await fixture.startWorker(async () => Promise.resolve(done));
    await eventually(() => seen.reports.length === 4, { ...soon, what: 'four runs' });
    expect(seen.dispatched).toEqual([c, b, d, a]);
    expect(seen.errors).toEqual([]);
  });

  test('a job that fails its attempt comes back to its place, not to the tail of its class', async () => {
    const [a, b, c] = await submitAll(0, 0, 0);
    let failed = false;
    const backoffOver = async (): Promise<unknown> =>
      eventually(
        async () => {
          const [, due] = await fixture.admin.zrange(
            `${fixture.keys.queue}delayed`,
            '0',
            '0',
            'WITHSCORES',
          );
          return due !== undefined && Date.now() > Number(due) / 4096;
        },
        { ...soon, what: 'the backoff to be over' },
      );
    const seen = await fixture.startWorker(async (job): Promise<RunResult> => {
      if (job.id === b) await backoffOver();
      if (job.id !== a || failed) return done;
      failed = true;
      return { kind: 'retry', code: 'model_server_unreachable', message: 'x', delayMs: 500 };
    });
    await eventually(() => seen.reports.length === 4, { ...soon, what: 'four runs' });
    expect(seen.dispatched).toEqual([a, b, a, c]);
    expect(seen.claims.map((claim) => claim.attemptsMade)).toEqual([0, 0, 1, 0]);
  });

  test('jobs that BullMQ put into its wait list wait their turn all the same', async () => {
    const [a, b, c] = await submitAll(-100, 0, 100);
    // Stall recovery, queue.retryJobs and queue.promoteJobs all push there.
    await fixture.admin.zrem(`${fixture.keys.queue}prioritized`, String(a));
    await fixture.admin.rpush(`${fixture.keys.queue}wait`, String(a));
    const seen = await fixture.startWorker(async () => Promise.resolve(done));
    await eventually(() => seen.reports.length === 3, { ...soon, what: 'three runs' });
    expect(seen.dispatched).toEqual([c, b, a]);
  });

  test('the scorer empties the wait list and undoes foreign priorities', async () => {
    const [a, b, c] = await submitAll(0, 0, 0);
    const bull = new Queue('gpu', { connection: fixture.admin, prefix: fixture.keys.pool });
    await (await bull.getJob(String(c)))?.changePriority({ priority: 0 });
    await (await bull.getJob(String(b)))?.changePriority({ priority: 7, lifo: true });
    const care = new QueueCare(fixture.admin, fixture.keys, new RedisClock());
    expect(await care.repair()).toBe(2);
    expect(await fixture.admin.llen(`${fixture.keys.queue}wait`)).toBe(0);
    expect(await fixture.admin.zrange(`${fixture.keys.queue}prioritized`, '0', '-1')).toEqual([
      a,
      b,
      c,
    ]);
    expect(await care.repair()).toBe(0);
    await bull.close();
  });

  test('waiting jobs are told by band, with the oldest wait', async () => {
    await submitAll(-100, -100, 100);
    const care = new QueueCare(fixture.admin, fixture.keys, new RedisClock());
    const backlog = await care.backlog();
    expect(backlog.batch?.waiting).toBe(2);
    expect(backlog.interactive?.waiting).toBe(1);
    expect(backlog.batch?.oldestWaitMs).toBeGreaterThanOrEqual(0);
  });
});

describe('submission', () => {
  test('a repeated submission of one id makes one job', async () => {
    const job = aNewJob();
    const first = await fixture.queue.submit(job);
    const second = await fixture.queue.submit(job);
    expect(second).toMatchObject({ jobId: first.jobId, arrival: first.arrival, isNew: true });
    expect(await fixture.admin.zcard(`${fixture.keys.queue}prioritized`)).toBe(1);
  });

  test('the request travels beside the job and is gone when the job completed', async () => {
    const job = aNewJob();
    const seen = await fixture.startWorker(async () => Promise.resolve(done));
    await fixture.queue.submit(job);
    await eventually(() => seen.reports.length === 1, { ...soon, what: 'the run' });
    expect(seen.claims[0]?.body?.toString()).toBe('body');
    expect(seen.claims[0]?.sealedHead.toString()).toBe('sealed');
    await eventually(async () => (await fixture.admin.exists(fixture.keys.payload(job.id))) === 0, {
      ...soon,
      what: 'the request to be erased',
    });
    expect(await fixture.queue.inspect([job.id])).toEqual(['ended']);
  });

  test('a submission without Redis is refused at once as redis_unavailable', async () => {
    fixture.producer.disconnect();
    await expect(fixture.queue.submit(aNewJob())).rejects.toMatchObject({
      code: 'redis_unavailable',
    });
  });
});

describe('giving up', () => {
  test('a waiting job that is given up leaves nothing behind', async () => {
    const job = aNewJob(0, { mode: 'sync' });
    await fixture.queue.submit(job);
    expect(await fixture.queue.abandon(job.id, 'client_closed')).toBe('evicted');
    const left = (await fixture.admin.keys('*')).filter((key) => key.includes(job.id));
    expect(left).toEqual([]);
    expect(await fixture.queue.inspect([job.id])).toEqual(['absent']);
  });

  test('a running job that is given up is aborted and its place taken by the next', async () => {
    let reason: unknown;
    const seen = await fixture.startWorker(async (job, _log, signal): Promise<RunResult> => {
      if (job.facts.mode === 'async') return done;
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      reason = signal.reason;
      return { kind: 'cancelled', code: 'client_closed', forget: true };
    });
    const job = aNewJob(100, { mode: 'sync' });
    await fixture.admin.set(fixture.keys.alive(fixture.ingressId), '1');
    await fixture.queue.submit(job);
    await eventually(() => seen.dispatched.length === 1, { ...soon, what: 'the dispatch' });
    const [next] = await submitAll(0);
    expect(await fixture.queue.abandon(job.id, 'client_closed')).toBe('aborting');
    await eventually(() => seen.reports.length === 2, { ...soon, what: 'the next run' });
    expect(reason).toMatchObject({ why: 'client_closed' });
    expect(seen.dispatched).toEqual([job.id, next]);
    await eventually(
      async () => (await fixture.admin.keys('*')).every((key) => !key.includes(job.id)),
      { ...soon, what: 'the job to be forgotten' },
    );
  });
});

describe('interruptions', () => {
  test('orphans of a dead worker run again first, at their place, by the next one', async () => {
    const first = await fixture.startWorker(async (_job, _log, signal): Promise<RunResult> => {
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
      return { kind: 'handed-back' };
    });
    const [a] = await submitAll(0);
    await eventually(() => first.dispatched.length === 1, { ...soon, what: 'the dispatch' });
    const [b, c] = await submitAll(0, 100);
    await first.close();
    const second = await fixture.startWorker(async () => Promise.resolve(done));
    await eventually(() => second.reports.length === 3, { ...soon, what: 'three runs' });
    expect(second.dispatched).toEqual([c, a, b]);
    expect(second.claims.map((claim) => claim.attemptsMade)).toEqual([0, 0, 0]);
  });

  test('a run is reported, and its request given up, only when its end is stored', async () => {
    const [a] = await submitAll(0);
    const seen = await fixture.startWorker(async () => {
      await redis.kill('SIGSTOP');
      return done;
    });
    await eventually(() => seen.dispatched.length === 1, { ...soon, what: 'the run' });
    for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(seen.reports).toEqual([]);
    await redis.kill('SIGCONT');
    await eventually(() => seen.reports.length === 1, { ...soon, what: 'the report' });
    expect(await fixture.queue.inspect([String(a)])).toEqual(['ended']);
  });

  test('a second owner fences the first: its log and its settlement are refused', async () => {
    let proceed: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (proceed = resolve));
    const first = await fixture.startWorker(async (_job, log): Promise<RunResult> => {
      await gate;
      log.head({ status: 200, headers: [] });
      await log.write(Buffer.from('late'));
      await log.drain();
      return done;
    });
    const [a] = await submitAll(0);
    await eventually(() => first.dispatched.length === 1, { ...soon, what: 'the dispatch' });
    const second = await fixture.startWorker(async () => Promise.resolve(done));
    await eventually(() => second.reports.length === 1, {
      ...soon,
      what: 'the second owner to run it',
    });
    proceed();
    await eventually(() => first.fencedCount > 1, {
      ...soon,
      what: 'log and settlement to be refused',
    });
    expect(first.reports).toEqual([]);
    const log = await fixture.admin.xrange(fixture.keys.log(String(a)), '-', '+');
    expect(JSON.stringify(log)).not.toContain('late');
    expect(await fixture.queue.inspect([String(a)])).toEqual(['ended']);
  });
});
