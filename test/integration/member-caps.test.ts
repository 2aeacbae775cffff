import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { NewJob, RunResult } from '../../src/ports/job-queue.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { RunGate } from '../support/run-gate.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let gate: RunGate;
const soon = { timeoutMs: 15_000 };

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  gate = new RunGate();
});
afterEach(async () => {
  gate.open();
  await fixture.close();
});

function aCappedJob(caps: Partial<NewJob['caps']>, member = 'ann', bodyBytes = 4): NewJob {
  const job = aNewJob(0, { member, bodyBytes });
  return { ...job, caps: { waiting: null, bytes: null, ...caps } };
}

async function submit(caps: Partial<NewJob['caps']>, bodyBytes = 4): Promise<string> {
  const job = aCappedJob(caps, 'ann', bodyBytes);
  await fixture.queue.submit(job);
  return job.id;
}

const two = { waiting: 2 };
const tenBytes = { bytes: 10 };
const full = { code: 'member_queue_full' };
const startHeld = async (result: RunResult = { kind: 'completed' }) => {
  gate.shut();
  const seen = await fixture.startWorker(async () => {
    await gate.pass();
    return result;
  });
  await eventually(() => gate.held === 1, { ...soon, what: 'a run to be held' });
  return seen;
};

describe('a member with as many waiting jobs as it may have', () => {
  test('is refused one more, others are not, nor is a submission that was repeated', async () => {
    await submit(two);
    const second = aCappedJob(two);
    await fixture.queue.submit(second);
    await expect(submit(two)).rejects.toMatchObject(full);
    await fixture.queue.submit(aCappedJob(two, 'bob'));
    await fixture.queue.submit(second);
    expect(await fixture.admin.zcard(`${fixture.keys.queue}prioritized`)).toBe(3);
  });

  test('leaves nothing behind of the one that is refused', async () => {
    await submit(two);
    await submit(two);
    const third = aCappedJob(two);
    await expect(fixture.queue.submit(third)).rejects.toMatchObject(full);
    expect((await fixture.admin.keys('*')).filter((key) => key.includes(third.id))).toEqual([]);
  });

  test('may have one more when one is dispatched', async () => {
    await submit(two);
    await submit(two);
    await startHeld();
    await submit(two);
    await expect(submit(two)).rejects.toMatchObject(full);
  });

  test('may have one more when one is cancelled, or removed by other hands', async () => {
    const first = await submit(two);
    const second = await submit(two);
    await fixture.queue.abandon(first, 'cancelled');
    await submit(two);
    await expect(submit(two)).rejects.toMatchObject(full);
    const job = await fixture.queue.queue.getJob(second);
    await job?.remove();
    await submit(two);
    await expect(submit(two)).rejects.toMatchObject(full);
  });

  test('has them counted in backoff too', async () => {
    await submit(two);
    const seen = await startHeld({
      kind: 'retry',
      code: 'model_unavailable',
      message: 'x',
      delayMs: 60_000,
    });
    gate.open();
    await eventually(() => seen.reports.length === 1, { ...soon, what: 'the run' });
    await eventually(
      async () => (await fixture.admin.zcard(`${fixture.keys.queue}delayed`)) === 1,
      { ...soon, what: 'the backoff' },
    );
    gate.shut();
    await submit(two);
    await eventually(() => gate.held === 1, { ...soon, what: 'the second to run' });
    await submit(two);
    await expect(submit(two)).rejects.toMatchObject(full);
  });

  test('keeps being counted when the journal is lost', async () => {
    await submit(two);
    await submit(two);
    await fixture.admin.del(fixture.keys.journal, fixture.keys.journalHead);
    await expect(submit(two)).rejects.toMatchObject(full);
  });
});

describe('a member with as many waiting bytes as it may have', () => {
  test('is refused what does not fit, and nothing smaller', async () => {
    await submit(tenBytes);
    await submit(tenBytes);
    await expect(submit(tenBytes)).rejects.toMatchObject(full);
    await submit(tenBytes, 2);
    await expect(submit(tenBytes, 1)).rejects.toMatchObject(full);
  });

  test('may have more when a job is dispatched or removed', async () => {
    await submit(tenBytes, 6);
    const second = await submit(tenBytes);
    await startHeld();
    await submit(tenBytes, 6);
    await expect(submit(tenBytes)).rejects.toMatchObject(full);
    await fixture.queue.abandon(second, 'cancelled');
    await submit(tenBytes);
  });
});
