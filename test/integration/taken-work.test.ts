import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { RedisJobFeed } from '../../src/adapters/redis/redis-job-feed.ts';
import { ResponseRelay } from '../../src/gateway/relay-response.ts';
import { RunAborted } from '../../src/ports/job-queue.ts';
import type { RunJob, RunResult, TakenWork } from '../../src/ports/job-queue.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
});
afterEach(async () => fixture.close());

const head = { status: 200, headers: ['Content-Type', 'application/json'] };
const work: TakenWork = { id: 'w1', head, body: Buffer.from('{"id":"w1"}') };
const completed: RunResult = { kind: 'completed' };

/** Until the worker is told to stop: then the job is handed back, as at a shutdown. */
async function untilStopped(signal: AbortSignal): Promise<RunResult> {
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  expect((signal.reason as RunAborted).why).toBe('shutting_down');
  return { kind: 'handed-back' };
}

/** A worker that submits work and holds the GPU for it. */
async function startHolder() {
  const tell: { keep: (jobId: string) => Promise<void> } = { keep: async () => Promise.resolve() };
  const seen = await fixture.startWorker(async (job, log, signal) => {
    await tell.keep(job.id);
    log.head(head);
    await log.write(work.body);
    return untilStopped(signal);
  });
  tell.keep = async (jobId) => seen.worker.keepWork(jobId, work);
  return seen;
}

const takesUp: RunJob = async (job, log) => {
  if (job.taken === undefined) return completed;
  log.head({ ...job.taken.head, repeats: true });
  await log.write(job.taken.body);
  return completed;
};

test('work that goes on at the model server keeps the GPU: the next worker takes its job up before any other', async () => {
  const first = await startHolder();
  const job = aNewJob(-100, { mode: 'async' });
  await fixture.queue.submit(job);
  await eventually(() => first.dispatched.length === 1, { what: 'the job to run' });
  await eventually(async () => (await fixture.admin.xlen(fixture.keys.log(job.id))) > 1, {
    what: 'its answer to stand in its log',
  });
  const better = aNewJob(100);
  await fixture.queue.submit(better);
  await fixture.closeWorkers();
  expect(await fixture.queue.inspect([job.id, better.id])).toEqual(['running', 'waiting']);

  const second = await fixture.startWorker(takesUp);
  await eventually(() => second.reports.length === 2, { what: 'both to end' });
  expect(second.dispatched).toEqual([job.id, better.id]);
  const [claim] = second.claims;
  expect(claim?.taken).toEqual(work);
  expect(claim?.run).toBe(2);
  expect(second.reports[0]?.ranMs).toBeGreaterThanOrEqual(claim?.ranBeforeMs ?? Infinity);
  expect(second.errors).toEqual([]);
});

test('a retry of a job whose work failed submits it anew', async () => {
  const first = await startHolder();
  const job = aNewJob(0, { mode: 'async' });
  await fixture.queue.submit(job);
  await eventually(() => first.dispatched.length === 1, { what: 'the job to run' });
  await fixture.closeWorkers();
  const second = await fixture.startWorker(async () =>
    Promise.resolve({ kind: 'failed', code: 'model_server_truncated', message: 'lost' }),
  );
  await eventually(() => second.reports.length === 1, { what: 'the job to fail' });
  expect(second.claims[0]?.taken).toBeDefined();
  expect(await fixture.admin.hexists(`${fixture.keys.pool}:payload:${job.id}`, 'work')).toBe(0);
});

test('readers of an answer that is repeated by a later run get it once and whole', async () => {
  const blocking = connectRedis(redis.url, 'blocking', () => undefined);
  await whenReady(blocking, 5000);
  const { admin, keys, ingressId } = fixture;
  const onError = (): void => undefined;
  const feed = new RedisJobFeed({ blocking, redis: admin, keys, ingressId, onError });
  await feed.start();
  const first = await startHolder();
  const job = aNewJob(0, { mode: 'async' });
  const relay = new ResponseRelay(job.id, {
    reader: feed,
    inspect: async (ids) => fixture.queue.inspect(ids),
    store: fixture.store,
  });
  await fixture.queue.submit(job);
  const got: string[] = [];
  const relayed = relay.relay(
    {
      expect: () => undefined,
      head: ({ status }) => void got.push(String(status)),
      write: async (bytes) => Promise.resolve(void got.push(bytes.toString())),
      end: () => void got.push('end'),
      fail: (code) => void got.push(code),
    },
    new AbortController().signal,
  );
  await eventually(() => got.length === 2, { what: 'the answer at its reader' });
  expect(first.errors).toEqual([]);
  await fixture.closeWorkers();
  await fixture.startWorker(takesUp);
  await relayed;
  expect(got).toEqual(['200', '{"id":"w1"}', 'end']);
  await feed.stop();
});
