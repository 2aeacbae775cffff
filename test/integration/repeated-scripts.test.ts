import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { QueueCare } from '../../src/adapters/redis/queue-care.ts';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';
import { RedisJobRecords } from '../../src/adapters/redis/redis-job-records.ts';
import type { NewJob } from '../../src/ports/job-queue.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, KEEP_TIMES, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

/** A command whose reply was lost is sent again: what it did before must stand, and nothing be done twice. */

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let records: RedisJobRecords;
let care: QueueCare;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  records = new RedisJobRecords(fixture.admin, fixture.keys);
  care = new QueueCare(fixture.admin, fixture.keys, new RedisClock());
});
afterEach(async () => fixture.close());

const keyed = (): NewJob => ({
  ...aNewJob(0, { mode: 'sync' }),
  idempotency: { name: 'name', request: 'request' },
});
const dueOf = async (what: string): Promise<number | null> => {
  const score = await fixture.admin.zscore(`${fixture.keys.pool}:deadlines`, what);
  return score === null ? null : Number(score);
};
const waiting = async (): Promise<number> =>
  fixture.admin.zcard(`${fixture.keys.queue}prioritized`);

test('a waiting job is cancelled once; later cancels change nothing of it', async () => {
  const job = aNewJob();
  await fixture.queue.submit(job);
  expect(await records.cancel(job.id)).toBe('cancelled');
  const first = await records.read(job.id);
  expect(first).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
  expect(await records.cancel(job.id)).toBe('ended');
  expect(await records.read(job.id)).toEqual(first);
  expect(await records.cancel(aNewJob().id)).toBe('absent');
  expect(await waiting()).toBe(0);
});

test('a running job is aborted once, however often it is cancelled', async () => {
  const aborts: string[] = [];
  const seen = await fixture.startWorker(async (job, _log, signal) => {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    aborts.push(job.id);
    return { kind: 'cancelled', code: 'cancelled', forget: false };
  });
  const job = aNewJob();
  await fixture.queue.submit(job);
  await eventually(() => seen.dispatched.length === 1, { what: 'its start' });
  expect(await records.cancel(job.id)).toBe('cancelling');
  expect(['cancelling', 'ended']).toContain(await records.cancel(job.id));
  await eventually(async () => (await records.cancel(job.id)) === 'ended', { what: 'its end' });
  expect(aborts).toEqual([job.id]);
  expect(await records.read(job.id)).toMatchObject({ state: 'cancelled', attempts: 1 });
});

test('a connection that is said to be gone twice starts the time of grace once', async () => {
  const job = keyed();
  await fixture.queue.submit(job);
  await fixture.queue.detach(job.id, job.id);
  const due = await dueOf(`grace:${job.id}`);
  expect(due).not.toBeNull();
  // The time of grace, as if the second one came much later.
  await fixture.admin.zadd(
    `${fixture.keys.pool}:deadlines`,
    Number(due) - 30_000,
    `grace:${job.id}`,
  );
  await fixture.queue.detach(job.id, job.id);
  expect(await dueOf(`grace:${job.id}`)).toBe(Number(due) - 30_000);
  expect(KEEP_TIMES.graceMs).toBeGreaterThan(30_000);
  // Who comes back takes the grace away; who goes after that gets all of it.
  const again = { ...keyed(), id: aNewJob().id };
  expect(await fixture.queue.submit(again)).toMatchObject({ jobId: job.id, isNew: false });
  expect(await dueOf(`grace:${job.id}`)).toBeNull();
  await fixture.queue.detach(job.id, again.id);
  expect(await dueOf(`grace:${job.id}`)).toBeGreaterThanOrEqual(Number(due));
});

test('what has come due is done once', async () => {
  const late = { ...aNewJob(), deadlines: { start: { withinMs: 1 } } };
  const cancelled = { ...aNewJob(), deadlines: { cancelAfterMs: 1 } };
  for (const job of [late, cancelled]) await fixture.queue.submit(job);
  await eventually(async () => (await care.sweepDeadlines()) === 0 && (await waiting()) === 0, {
    what: 'both to end',
  });
  const ends = await Promise.all([late, cancelled].map(async ({ id }) => records.read(id)));
  expect(ends).toMatchObject([{ state: 'expired' }, { state: 'cancelled' }]);
  expect(await fixture.admin.llen(`${fixture.keys.pool}:evictions`)).toBe(2);
  expect(await care.sweepDeadlines()).toBe(0);
  expect(await fixture.admin.llen(`${fixture.keys.pool}:evictions`)).toBe(2);
});

test('a job that is not known is neither read nor listed, and a list goes on where it ended', async () => {
  expect(await records.read(aNewJob().id)).toBeUndefined();
  const jobs = Array.from({ length: 5 }, () => aNewJob(0, { member: 'ann' }));
  for (const job of jobs) await fixture.queue.submit(job);
  await fixture.queue.submit(aNewJob(0, { member: 'bob' }));
  const seen: string[] = [];
  let before: number | null = null;
  do {
    const page = await records.list({
      ...{ member: 'ann', states: null, model: null, band: null },
      ...{ before, limit: 2 },
    });
    expect(page.jobs.length).toBeLessThanOrEqual(2);
    seen.push(...page.jobs.map(({ id }) => id));
    before = page.next;
  } while (before !== null);
  expect(seen).toEqual(jobs.map(({ id }) => id).toReversed());
});
