import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { whenReady } from '../../src/adapters/redis/connection.ts';
import type { IdempotencyKey, NewJob } from '../../src/ports/job-queue.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import type { CuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let proxy: CuttingProxy;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let isCutting = false;

beforeAll(async () => {
  redis = await startRedis();
  proxy = await startCuttingProxy(redis.socket, /"waitingCap":/, () => isCutting);
});
afterAll(async () => {
  await proxy.close();
  await redis.stop();
});
beforeEach(async () => {
  isCutting = false;
  fixture = await queueFixture(proxy.url);
});
afterEach(async () => fixture.close());

const aKey = (): IdempotencyKey => ({ name: randomUUID(), request: 'the same' });

/** Submits the job; it is stored, and the answer to that is lost. */
async function submitUnanswered(job: NewJob): Promise<void> {
  isCutting = true;
  await expect(fixture.queue.submit(job)).rejects.toMatchObject({
    code: 'redis_unavailable',
    isUncertain: true,
  });
  isCutting = false;
  // Its connection may be about to be cut still, and is back a moment later.
  const isStored = async (): Promise<boolean> => {
    await whenReady(fixture.producer, 5000);
    return (await fixture.queue.inspect([job.id]))[0] === 'waiting';
  };
  await eventually(isStored, { what: 'the job to wait' });
}
const settle = async (): Promise<void> => {
  await eventually(async () => (await fixture.queue.settleDoubts()) === 0, { what: 'no doubts' });
};
const grace = async (id: string): Promise<string | null> =>
  fixture.admin.zscore(`${fixture.keys.pool}:deadlines`, `grace:${id}`);

test.each([
  ['comes before the doubt is settled', true],
  ['comes after it', false],
])(
  'an async job with a key whose answer was lost is the one a repeat finds, and it stays, when the repeat %s',
  async (_, isBefore) => {
    const idempotency = aKey();
    const first = { ...aNewJob(), idempotency };
    await submitUnanswered(first);
    if (!isBefore) await settle();
    const repeat = await fixture.queue.submit({ ...aNewJob(), idempotency });
    expect(repeat).toMatchObject({ jobId: first.id, isNew: false });
    await settle();
    expect(await fixture.queue.inspect([first.id])).toEqual(['waiting']);
    const seen = await fixture.startWorker(async () => Promise.resolve({ kind: 'completed' }));
    await eventually(() => seen.reports.length === 1, { what: 'the run' });
    expect(seen.dispatched).toEqual([first.id]);
  },
);

test('a running async job with a key is not aborted when the answer to its submission was lost', async () => {
  const idempotency = aKey();
  const first = { ...aNewJob(), idempotency };
  await submitUnanswered(first);
  let end = (): void => undefined;
  const until = new Promise<void>((resolve) => (end = resolve));
  const seen = await fixture.startWorker(async (_job, _log, signal) => {
    await until;
    return signal.aborted
      ? { kind: 'cancelled', code: 'client_closed', forget: false }
      : { kind: 'completed' };
  });
  await eventually(() => seen.dispatched.length === 1, { what: 'the run' });
  await settle();
  expect(await fixture.admin.hget(`${fixture.keys.pool}:payload:${first.id}`, 'cancel')).toBeNull();
  end();
  await eventually(() => seen.reports.length === 1, { what: 'the end' });
  expect(seen.reports[0]?.result.kind).toBe('completed');
});

test('a sync job with a key whose answer was lost has its time of grace, until a repeat waits for it', async () => {
  const idempotency = aKey();
  const first = { ...aNewJob(0, { mode: 'sync' }), idempotency };
  await submitUnanswered(first);
  await settle();
  expect(await fixture.queue.inspect([first.id])).toEqual(['waiting']);
  expect(await grace(first.id)).not.toBeNull();
  const repeat = { ...aNewJob(0, { mode: 'sync' }), idempotency };
  expect(await fixture.queue.submit(repeat)).toMatchObject({ jobId: first.id, isNew: false });
  expect(await grace(first.id)).toBeNull();
  await fixture.queue.detach(first.id, repeat.id);
  expect(await grace(first.id)).not.toBeNull();
});

test('a repeat that waits for a sync job keeps it when the doubt of the first is settled', async () => {
  const idempotency = aKey();
  const first = { ...aNewJob(0, { mode: 'sync' }), idempotency };
  await submitUnanswered(first);
  await fixture.queue.submit({ ...aNewJob(0, { mode: 'sync' }), idempotency });
  await settle();
  expect(await fixture.queue.inspect([first.id])).toEqual(['waiting']);
  expect(await grace(first.id)).toBeNull();
});

test.each(['sync', 'async'] as const)(
  'a %s job without a key whose answer was lost is given up: nobody can come back for it',
  async (mode) => {
    const job = aNewJob(0, { mode });
    await submitUnanswered(job);
    await settle();
    expect(await fixture.queue.inspect([job.id])).toEqual(['absent']);
  },
);
