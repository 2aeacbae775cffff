import { performance } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';

const BURST = 300;
/** Longer than a command of a `prompt` connection may take. */
const BUSY_MS = 2500;

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

function keepBusy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('a burst that arrives in one long turn of the process is stored in full', async () => {
  const burst = Array.from({ length: BURST }, async () => fixture.queue.submit(aNewJob()));
  keepBusy(BUSY_MS);
  const stored = await Promise.all(burst);
  expect(new Set(stored.map(({ arrival }) => arrival)).size).toBe(BURST);
});

test('many questions about jobs are asked together and answered each', async () => {
  const jobs = Array.from({ length: 50 }, () => aNewJob());
  for (const job of jobs) await fixture.queue.submit(job);
  const { id: absent } = aNewJob();
  const places = await Promise.all(
    [...jobs.map(({ id }) => id), absent].map(async (id) => fixture.queue.inspect([id])),
  );
  expect(places.flat()).toEqual([...jobs.map(() => 'waiting'), 'absent']);
});
