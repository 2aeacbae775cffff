import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { parseSeries } from '../../src/adapters/redis/duration-series.ts';
import { poolKeys } from '../../src/adapters/redis/keys.ts';
import { RedisDurationBook } from '../../src/adapters/redis/redis-duration-book.ts';
import { defaultDocument } from '../../src/config/default-document.ts';
import type { DurationSample } from '../../src/ports/duration-book.ts';
import { eventually } from '../support/eventually.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

const CHAT = '/v1/chat/completions';

let server: TestRedis;
let redis: ReturnType<typeof connectRedis>;
let keys: ReturnType<typeof poolKeys>;
let worker: RedisDurationBook;
let reader: RedisDurationBook;
let errors: Error[];

beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, 'prompt', () => undefined);
  await whenReady(redis, 5000);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});
beforeEach(() => {
  keys = poolKeys(`t-${randomUUID().slice(0, 8)}`);
  errors = [];
  worker = aBook();
  reader = aBook();
});
afterEach(() => {
  worker.close();
  reader.close();
});

function aBook(options: { seriesKept?: number; refreshMs?: number } = {}): RedisDurationBook {
  return new RedisDurationBook({
    redis,
    keys,
    guesses: defaultDocument.durations,
    onError: (error) => errors.push(error),
    ...options,
  });
}

const sample = (ms: number, facts: Partial<DurationSample> = {}): DurationSample => ({
  model: 'm',
  route: CHAT,
  kind: 'text',
  cold: false,
  ms,
  ...facts,
});
const list = (model: string) =>
  `${keys.pool}:durations:of:["run","${model}","${CHAT}","text",false]`;

describe('the book', () => {
  test('tells every process what the worker recorded, in its next reading', async () => {
    await worker.record(sample(100));
    await worker.record(sample(3000, { cold: true }));
    await worker.recordLoad({ model: 'm', ms: 2500 });
    expect(reader.estimateOf('m', CHAT, 'text', false).basis).toBe('configured-kind');
    await reader.refresh();
    expect(reader.estimateOf('m', CHAT, 'text', false)).toMatchObject({ p50Ms: 100, samples: 1 });
    expect(reader.estimateOf('m', CHAT, 'text', true)).toMatchObject({ p50Ms: 2600 });
    expect(reader.loadOf('m')).toMatchObject({ p50Ms: 2500, samples: 1 });
    await worker.record(sample(300));
    await worker.record(sample(200));
    await reader.refresh();
    expect(reader.estimateOf('m', CHAT, 'text', false)).toMatchObject({ p50Ms: 200, samples: 3 });
  });

  test('is read by itself every few seconds', async () => {
    const watching = aBook({ refreshMs: 20 });
    await watching.start();
    await worker.record(sample(100));
    await eventually(() => watching.estimateOf('m', CHAT, 'text', false).samples === 1, {
      what: 'the sample to be read',
    });
    watching.close();
  });

  test('keeps the newest 64 samples of a series', async () => {
    for (let ms = 1; ms <= 70; ms += 1) await worker.record(sample(ms));
    expect(await redis.lrange(list('m'), 0, 0)).toEqual(['7']);
    await reader.refresh();
    expect(reader.estimateOf('m', CHAT, 'text', false)).toMatchObject({ p99Ms: 70, samples: 64 });
  });

  test('forgets the series that was not added to for longest, and its readers do too', async () => {
    const small = aBook({ seriesKept: 2 });
    await small.record(sample(1, { model: 'a' }));
    await small.record(sample(2, { model: 'b' }));
    await reader.refresh();
    await small.record(sample(3, { model: 'a' }));
    await small.record(sample(4, { model: 'c' }));
    await reader.refresh();
    const samples = ['a', 'b', 'c'].map(
      (model) => reader.estimateOf(model, CHAT, 'text', false).samples,
    );
    expect(samples).toEqual([2, 0, 1]);
    expect(await redis.exists(list('b'))).toBe(0);
    expect(await redis.keys(`${keys.pool}:durations:*`)).toHaveLength(4);
  });

  test('reads only what changed', async () => {
    await worker.record(sample(1, { model: 'a' }));
    await worker.record(sample(1, { model: 'b' }));
    await reader.refresh();
    await redis.del(list('a'));
    await worker.record(sample(2, { model: 'b' }));
    await reader.refresh();
    const samples = ['a', 'b'].map(
      (model) => reader.estimateOf(model, CHAT, 'text', false).samples,
    );
    expect(samples).toEqual([1, 2]);
  });

  test('starts anew when Redis lost everything', async () => {
    for (const ms of [1, 2, 3]) await worker.record(sample(ms));
    await reader.refresh();
    await redis.del(await redis.keys(`${keys.pool}:durations:*`));
    await worker.record(sample(9));
    await reader.refresh();
    expect(reader.estimateOf('m', CHAT, 'text', false)).toMatchObject({ p50Ms: 9, samples: 1 });
  });

  test.each([NaN, Infinity, -1])('takes no time of %p ms', async (ms) => {
    await worker.record(sample(ms));
    expect(await redis.keys(`${keys.pool}:durations:*`)).toEqual([]);
  });

  test('takes any id apart from endless ones', async () => {
    const odd = 'org/"m":q4\n\u0000é';
    await worker.record(sample(5, { model: odd }));
    await worker.record(sample(5, { model: 'x'.repeat(257) }));
    await reader.refresh();
    expect(reader.estimateOf(odd, CHAT, 'text', false).samples).toBe(1);
    expect(await redis.zcard(`${keys.pool}:durations:used`)).toBe(1);
  });
});

test('without Redis nothing is recorded, nothing throws, and what was read stays', async () => {
  const lost = connectRedis(server.url, 'prompt', () => undefined);
  await whenReady(lost, 5000);
  await worker.record(sample(100));
  const book = new RedisDurationBook({
    redis: lost,
    keys,
    guesses: defaultDocument.durations,
    onError: (error) => errors.push(error),
  });
  await book.refresh();
  lost.disconnect();
  await book.record(sample(200));
  await book.refresh();
  expect(errors).toHaveLength(2);
  expect(book.estimateOf('m', CHAT, 'text', false)).toMatchObject({ p50Ms: 100, samples: 1 });
});

test.each(['', 'x', '{}', '[]', '["run","m"]', '["load"]', '["load","m","more"]', '["new","m"]'])(
  'a series called %p is passed over',
  (name) => {
    expect(parseSeries(name)).toBeUndefined();
  },
);
