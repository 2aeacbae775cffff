import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
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

test.each([
  ['finish (with its fetch)', /"fetchNext":/, 3],
  ['idle fetch', /"force":(?:true|false)\}/, 2],
])(
  'with replies of %s lost on the wire every job runs once, in order',
  async (_what, pattern, every) => {
    let seenCommands = 0;
    const proxy = await startCuttingProxy(redis.socket, pattern, () => {
      seenCommands += 1;
      return seenCommands % every === 0;
    });
    try {
      const jobs = Array.from({ length: 40 }, () => aNewJob(0));
      for (const job of jobs.slice(0, 20)) await fixture.queue.submit(job);
      const seen = await fixture.startWorker(
        async () => Promise.resolve({ kind: 'completed' }),
        proxy.url,
      );
      // The second half comes one by one, so that the worker is idle before each and its idle fetch is exercised too.
      for (const [index, job] of jobs.slice(20).entries()) {
        await eventually(() => seen.reports.length >= 20 + index, {
          timeoutMs: 20_000,
          what: `${20 + index} runs`,
        });
        await fixture.queue.submit(job);
      }
      await eventually(() => seen.reports.length >= 40, { timeoutMs: 20_000, what: 'all runs' });
      await eventually(
        async () => (await fixture.admin.llen(`${fixture.keys.queue}active`)) === 0,
        {
          timeoutMs: 10_000,
          what: 'the last settlement',
        },
      );
      expect(proxy.cuts).toBeGreaterThan(4);
      expect(seen.dispatched).toEqual(jobs.map((job) => job.id));
      expect(await fixture.admin.zcard(`${fixture.keys.queue}completed`)).toBe(40);
    } finally {
      // First the workers: one that cannot reach Redis any more would go on trying.
      await fixture.closeWorkers();
      await proxy.close();
    }
  },
  60_000,
);

test('with replies of a retry lost, the attempt is repeated once and in its place', async () => {
  const proxy = await startCuttingProxy(
    redis.socket,
    /"fetchNext":true\}/,
    () => Math.random() < 0.4,
  );
  try {
    const jobs = Array.from({ length: 12 }, () => aNewJob(0));
    for (const job of jobs) await fixture.queue.submit(job);
    const attempts = new Map<string, number[]>();
    const seen = await fixture.startWorker(async (job) => {
      attempts.set(job.id, [...(attempts.get(job.id) ?? []), job.attemptsMade]);
      return Promise.resolve(
        job.attemptsMade === 0
          ? { kind: 'retry', code: 'model_unavailable', message: 'x', delayMs: 5 }
          : { kind: 'completed' },
      );
    }, proxy.url);
    await eventually(() => seen.reports.length >= 24, {
      timeoutMs: 20_000,
      what: 'two attempts each',
    });
    expect([...attempts.values()]).toEqual(jobs.map(() => [0, 1]));
  } finally {
    // First the workers: one that cannot reach Redis any more would go on trying.
    await fixture.closeWorkers();
    await proxy.close();
  }
}, 60_000);

test('a Redis that restarts under a busy worker loses no job and doubles none', async () => {
  const jobs = Array.from({ length: 60 }, () => aNewJob(0));
  for (const job of jobs) await fixture.queue.submit(job);
  const seen = await fixture.startWorker(async () => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    return { kind: 'completed' };
  });
  for (const after of [10, 30]) {
    await eventually(() => seen.reports.length >= after, {
      timeoutMs: 20_000,
      what: `${after} runs`,
    });
    await redis.kill('SIGKILL');
    await redis.restart();
  }
  await eventually(() => seen.reports.length >= 60, { timeoutMs: 20_000, what: 'all runs' });
  expect(seen.dispatched).toEqual(jobs.map((job) => job.id));
}, 60_000);
