import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { RedisJobFeed } from '../../src/adapters/redis/redis-job-feed.ts';
import { RedisResponseLogWriter } from '../../src/adapters/redis/redis-response-log-writer.ts';
import { Scripts } from '../../src/adapters/redis/scripts.ts';
import { ResponseRelay } from '../../src/gateway/relay-response.ts';
import type { ResponseSink } from '../../src/gateway/relay-response.ts';
import type { RunResult } from '../../src/ports/job-queue.ts';
import { FencedError } from '../../src/ports/response-log.ts';
import type { ResponseHead, ResponseLogWriter } from '../../src/ports/response-log.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let feed: RedisJobFeed;
let blocking: ReturnType<typeof connectRedis>;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  blocking = connectRedis(redis.url, 'blocking', () => undefined);
  await whenReady(blocking, 5000);
  feed = new RedisJobFeed({
    blocking,
    redis: fixture.admin,
    keys: fixture.keys,
    ingressId: fixture.ingressId,
    onError: () => undefined,
  });
  await feed.start();
});
afterEach(async () => {
  await feed.stop();
  await fixture.close();
});

/** A client that takes what it gets; `slow` waits a turn after every piece. */
class RecordingSink implements ResponseSink {
  heads: ResponseHead[] = [];
  pieces: Buffer[] = [];
  ended = false;
  failures: string[] = [];
  expected = 0;
  expect(): void {
    this.expected += 1;
  }
  head(head: ResponseHead): void {
    this.heads.push(head);
  }
  async write(bytes: Buffer): Promise<void> {
    this.pieces.push(Buffer.from(bytes));
    return Promise.resolve();
  }
  end(): void {
    this.ended = true;
  }
  fail(code: string): void {
    this.failures.push(code);
  }
  get body(): Buffer {
    return Buffer.concat(this.pieces);
  }
}

/** Runs one job whose answer is written by `write`, and relays it. */
async function answerOf(
  write: (log: ResponseLogWriter) => Promise<RunResult>,
  onWorker?: () => Promise<void>,
): Promise<RecordingSink> {
  const job = aNewJob(0);
  const relay = new ResponseRelay(job.id, {
    reader: feed,
    inspect: async (ids) => fixture.queue.inspect(ids),
    store: fixture.store,
  });
  await fixture.queue.submit(job);
  const sink = new RecordingSink();
  const relayed = relay.relay(sink, new AbortController().signal);
  await fixture.startWorker(async (_job, log) => write(log));
  await onWorker?.();
  await relayed;
  return sink;
}

const head = { status: 200, headers: ['Content-Type', 'text/plain'] };
const completed = { kind: 'completed' } as const;

describe('an answer through the log', () => {
  test('arrives piece by piece while it is produced', async () => {
    const seen: number[] = [];
    const job = aNewJob(0);
    const relay = new ResponseRelay(job.id, {
      reader: feed,
      inspect: async (ids) => fixture.queue.inspect(ids),
      store: fixture.store,
    });
    await fixture.queue.submit(job);
    const sink = new RecordingSink();
    const relayed = relay.relay(sink, new AbortController().signal);
    await fixture.startWorker(async (_job, log) => {
      log.head(head);
      for (let index = 0; index < 5; index += 1) {
        await log.write(Buffer.from(`piece ${index};`));
        await eventually(() => sink.pieces.length === index + 1, {
          timeoutMs: 3000,
          what: `piece ${index} at the client`,
        });
        seen.push(sink.pieces.length);
      }
      return completed;
    });
    await relayed;
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    expect(sink.heads).toEqual([head]);
    expect(sink.body.toString()).toBe('piece 0;piece 1;piece 2;piece 3;piece 4;');
    expect(sink.ended).toBe(true);
  });

  test.each([0, 1, 255 * 1024, 256 * 1024 + 1, 9_000_001])(
    'of %i bytes arrives whole',
    async (size) => {
      const body = randomBytes(size);
      const sink = await answerOf(async (log) => {
        log.head(head);
        for (let at = 0; at < size; at += 65_536) await log.write(body.subarray(at, at + 65_536));
        return completed;
      });
      expect(sink.body.equals(body)).toBe(true);
      expect(sink.heads).toEqual([head]);
      expect(sink.ended).toBe(true);
    },
  );

  test('large ones leave no more than a little in Redis', async () => {
    const before = Number(/used_memory:(\d+)/.exec(await fixture.admin.info('memory'))?.[1]);
    const sink = await answerOf(async (log) => {
      log.head(head);
      for (let index = 0; index < 400; index += 1) await log.write(Buffer.alloc(65_536, index));
      return completed;
    });
    expect(sink.body.length).toBe(400 * 65_536);
    const after = Number(/used_memory:(\d+)/.exec(await fixture.admin.info('memory'))?.[1]);
    expect(after - before).toBeLessThan(3_000_000);
  });

  test('survives Redis being killed in the middle, byte for byte', async () => {
    const body = randomBytes(200 * 500);
    let half: () => void = () => undefined;
    const reached = new Promise<void>((resolve) => (half = resolve));
    const sink = await answerOf(
      async (log) => {
        log.head(head);
        for (let at = 0; at < body.length; at += 500) {
          await log.write(body.subarray(at, at + 500));
          await new Promise((resolve) => setImmediate(resolve));
          if (at === 50_000) half();
        }
        return completed;
      },
      async () => {
        await reached;
        await redis.kill('SIGKILL');
        await redis.restart();
      },
    );
    expect(sink.body.equals(body)).toBe(true);
    expect(sink.ended).toBe(true);
  });

  test('a failed job reaches its client as an error, not as an empty answer', async () => {
    const sink = await answerOf(async () =>
      Promise.resolve({ kind: 'failed', code: 'model_server_unreachable', message: 'no' }),
    );
    expect(sink.failures).toEqual(['model_server_unreachable']);
    expect(sink.heads).toEqual([]);
  });

  test('a job that vanishes is reported as lost instead of being waited for', async () => {
    const job = aNewJob(0);
    const relay = new ResponseRelay(job.id, {
      reader: feed,
      inspect: async (ids) => fixture.queue.inspect(ids),
      store: fixture.store,
    });
    await fixture.queue.submit(job);
    await fixture.admin.flushall();
    const sink = new RecordingSink();
    await relay.relay(sink, new AbortController().signal);
    expect(sink.failures).toEqual(['internal_error']);
  }, 15_000);
});

test('an older run can add nothing once a newer one has begun', async () => {
  const seen = await fixture.startWorker(async () => Promise.resolve(completed));
  const jobId = randomUUID();
  const writer = (run: number): RedisResponseLogWriter =>
    new RedisResponseLogWriter({
      scripts: new Scripts(fixture.admin),
      keys: fixture.keys,
      store: fixture.store,
      jobId,
      run,
      fence: seen.owner.fence,
    });
  const [older, newer] = [writer(1), writer(2)];
  // More than a tail, so that it has to be stored before the settlement.
  const large = Buffer.alloc(300 * 1024);
  newer.head(head);
  await newer.write(large);
  await newer.drain();
  older.head(head);
  await older.write(large);
  await expect(older.drain()).rejects.toThrow(FencedError);
  await expect(older.write(Buffer.from('later'))).rejects.toThrow(FencedError);
  const entries = await fixture.admin.xrange(fixture.keys.log(jobId), '-', '+');
  expect(entries.map(([id]) => id)).toEqual(['2-0', `2-${large.length}`]);
});
