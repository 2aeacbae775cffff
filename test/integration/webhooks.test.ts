import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Queue } from 'bullmq';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { QueueCare } from '../../src/adapters/redis/queue-care.ts';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';
import { WebhookDeliveries } from '../../src/adapters/redis/webhook-deliveries.ts';
import { readEndedJob } from '../../src/adapters/redis/webhook-outbox.ts';
import type { EndedJob } from '../../src/ports/ended-job.ts';
import type { JobFacts, NewJob, RunResult } from '../../src/ports/job-queue.ts';
import type { WebhookResult } from '../../src/ports/telemetry.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

const soon = { timeoutMs: 8000 };
const done = { kind: 'completed' } as const;

let server: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
const closers: (() => Promise<void>)[] = [];

beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => server.stop());
beforeEach(async () => {
  fixture = await queueFixture(server.url);
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await fixture.close();
});

const aToldJob = (facts: Partial<JobFacts> = {}): NewJob => ({
  ...aNewJob(0, facts),
  sealedWebhook: Buffer.from([0, 255, 17]),
});

async function outbox(): Promise<EndedJob[]> {
  return (await fixture.admin.lrange(fixture.keys.outbox, 0, -1)).map(readEndedJob);
}
const told = async (what: string): Promise<EndedJob> => {
  const [first] = await eventually(
    async () => {
      const entries = await outbox();
      return entries.length > 0 && entries;
    },
    { ...soon, what },
  );
  if (first === undefined) throw new Error('nothing was told');
  return first;
};

/** Deliveries on a connection of their own; `attempts` says what came of each. */
function deliveries(
  deliver: (job: EndedJob, at: { attempt: number; isLast: boolean }) => WebhookResult,
  attempts = 3,
): { calls: { job: EndedJob; attempt: number; isLast: boolean }[]; errors: Error[] } {
  const redis = connectRedis(server.url, 'patient', () => undefined);
  const calls: { job: EndedJob; attempt: number; isLast: boolean }[] = [];
  const errors: Error[] = [];
  const webhooks = new WebhookDeliveries({
    redis,
    keys: fixture.keys,
    attempts,
    backoffMs: 20,
    lockMs: 500,
    deliver: async (job, at) => {
      calls.push({ job, ...at });
      return Promise.resolve(deliver(job, at));
    },
    onError: (error) => void errors.push(error),
  });
  webhooks.start();
  closers.push(async () => {
    await webhooks.stop(2000);
    redis.disconnect();
  });
  return { calls, errors };
}

describe('the end of a job that somebody wants to hear of', () => {
  test('is put into the outbox when it completed, with all that is told of it', async () => {
    const job = aToldJob({ member: 'ann', model: 'llama' });
    await fixture.queue.submit(job);
    await fixture.startWorker(async () => Promise.resolve(done));
    const entry = await told('the end of the job');
    expect(entry).toMatchObject({
      jobId: job.id,
      outcome: 'completed',
      code: '',
      attempts: 1,
      facts: { member: 'ann', model: 'llama' },
    });
    expect([...entry.sealedAddress]).toEqual([0, 255, 17]);
    expect(entry.startedMs).toBeGreaterThanOrEqual(entry.createdMs);
    expect(entry.endedMs).toBeGreaterThanOrEqual(entry.startedMs ?? Infinity);
  });

  test('is put there when it failed, and once more when an operator ran it again', async () => {
    const job = aToldJob();
    await fixture.queue.submit(job);
    const results: RunResult[] = [
      { kind: 'failed', code: 'model_server_unreachable', message: 'it is away' },
      done,
    ];
    await fixture.startWorker(async () => Promise.resolve(results.shift() ?? done));
    const first = await told('the failure');
    expect(first).toMatchObject({ outcome: 'failed', code: 'model_server_unreachable' });
    expect(first.message).toBe('it is away');
    await (await fixture.queue.queue.getJob(job.id))?.retry('failed');
    const entries = await eventually(
      async () => {
        const found = await outbox();
        return found.length === 2 && found;
      },
      { ...soon, what: 'the second end' },
    );
    expect(entries[1]).toMatchObject({ jobId: job.id, outcome: 'completed' });
    expect(entries[1]?.eventId).not.toBe(first.eventId);
  });

  test('is put there when its client left while it waited, though nothing else of it is left', async () => {
    const job = aToldJob({ mode: 'sync' });
    await fixture.queue.submit(job);
    await fixture.queue.abandon(job.id, 'client_closed');
    expect(await told('the eviction')).toMatchObject({
      jobId: job.id,
      outcome: 'evicted',
      code: 'client_closed',
      startedMs: null,
      attempts: 0,
    });
    expect(await fixture.admin.exists(fixture.keys.payload(job.id))).toBe(0);
  });

  test('is put there when its client left while it ran', async () => {
    const job = aToldJob();
    await fixture.startWorker(async (): Promise<RunResult> =>
      Promise.resolve({ kind: 'cancelled', code: 'client_closed', forget: true }),
    );
    await fixture.queue.submit(job);
    expect(await told('the end')).toMatchObject({ outcome: 'cancelled', code: 'client_closed' });
  });

  test('is put there when its start deadline passed', async () => {
    const job = { ...aToldJob(), deadlines: { start: { withinMs: 1 } } };
    await fixture.queue.submit(job);
    const care = new QueueCare(fixture.admin, fixture.keys, new RedisClock());
    await eventually(
      async () => {
        await care.sweepDeadlines();
        return (await outbox()).length > 0;
      },
      { ...soon, what: 'the deadline' },
    );
    expect(await told('the expiry')).toMatchObject({
      outcome: 'expired',
      code: 'start_deadline_passed',
    });
  });

  test('is not put there when nobody asked', async () => {
    const seen = await fixture.startWorker(async () => Promise.resolve(done));
    await fixture.queue.submit(aNewJob());
    await eventually(() => seen.reports.length === 1, { ...soon, what: 'the run' });
    expect(await outbox()).toEqual([]);
  });

  test('shows its address neither in the job nor in a delivery', async () => {
    const job = aToldJob();
    await fixture.queue.submit(job);
    const hash = await fixture.admin.hgetall(`${fixture.keys.queue}${job.id}`);
    expect(JSON.stringify(hash)).not.toContain(Buffer.from([0, 255, 17]).toString('base64'));
  });
});

describe('deliveries', () => {
  const end = async (): Promise<string> => {
    const job = aToldJob({ mode: 'sync' });
    await fixture.queue.submit(job);
    await fixture.queue.abandon(job.id, 'client_closed');
    return job.id;
  };

  test('are made once for each end, and leave the outbox empty', async () => {
    const ids = [await end(), await end(), await end()];
    const { calls, errors } = deliveries(() => 'delivered');
    await eventually(() => calls.length === 3, { ...soon, what: 'three deliveries' });
    expect(calls.map(({ job }) => job.jobId).sort()).toEqual([...ids].sort());
    await eventually(async () => (await outbox()).length === 0, {
      ...soon,
      what: 'an empty outbox',
    });
    expect(errors).toEqual([]);
  });

  test('are repeated under the same id until they succeed', async () => {
    await end();
    const { calls } = deliveries((_job, { attempt }) => (attempt < 3 ? 'retried' : 'delivered'));
    await eventually(() => calls.length === 3, { ...soon, what: 'three attempts' });
    expect(calls.map(({ attempt, isLast }) => [attempt, isLast])).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ]);
    expect(new Set(calls.map(({ job }) => job.eventId)).size).toBe(1);
  });

  test('that are given up are not repeated, and can be looked at', async () => {
    await end();
    const { calls } = deliveries(() => 'given_up');
    const bull = new Queue('webhooks', { connection: fixture.admin, prefix: fixture.keys.pool });
    closers.push(async () => bull.close());
    await eventually(async () => (await bull.getFailedCount()) === 1, {
      ...soon,
      what: 'the delivery to be given up',
    });
    expect(calls).toHaveLength(1);
    expect((await bull.getFailed())[0]?.failedReason).toBe('given up');
  });

  test('are not doubled by a second scorer that reads the same entry late', async () => {
    await end();
    const [entry] = await fixture.admin.lrange(fixture.keys.outbox, 0, 0);
    const { calls } = deliveries(() => 'delivered');
    await eventually(async () => (await outbox()).length === 0, {
      ...soon,
      what: 'an empty outbox',
    });
    await eventually(() => calls.length === 1, { ...soon, what: 'the delivery' });
    await fixture.admin.rpush(fixture.keys.outbox, entry ?? '');
    const other = await end();
    await eventually(() => calls.some(({ job }) => job.jobId === other), {
      ...soon,
      what: 'the next delivery',
    });
    expect(calls).toHaveLength(2);
  });

  test('go on behind an entry that cannot be read', async () => {
    await fixture.admin.rpush(fixture.keys.outbox, 'nonsense');
    const id = await end();
    const { calls } = deliveries(() => 'delivered');
    await eventually(() => calls.length === 1, { ...soon, what: 'the delivery' });
    expect(calls[0]?.job.jobId).toBe(id);
  });

  test('that a dead scorer left half done are made by the next one', async () => {
    const id = await end();
    const redis = connectRedis(server.url, 'patient', () => undefined);
    let release: (result: WebhookResult) => void = () => undefined;
    const dead = new WebhookDeliveries({
      redis,
      keys: fixture.keys,
      attempts: 3,
      backoffMs: 20,
      lockMs: 500,
      deliver: async () => new Promise((resolve) => (release = resolve)),
      onError: () => undefined,
    });
    dead.start();
    await eventually(async () => (await outbox()).length === 0, {
      ...soon,
      what: 'the entry to be read',
    });
    const stopped = dead.stop(60_000);
    redis.disconnect();
    const { calls } = deliveries(() => 'delivered');
    await eventually(() => calls.length === 1, { ...soon, what: 'the delivery' });
    expect(calls[0]).toMatchObject({ attempt: 1, job: { jobId: id } });
    release('delivered');
    await stopped;
  });
});
