import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import type { Redis } from 'ioredis';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

// A command of the prompt manner has two seconds.
const STANDSTILL_MS = 2500;
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => server.stop());
beforeEach(async () => {
  redis = connectRedis(server.url, 'prompt', () => undefined);
  await whenReady(redis, 5000);
});
afterEach(() => {
  redis.disconnect();
});

/** The process stands still, as one that was stopped and continued or starved of CPU; Redis does not. */
const standStill = (): unknown =>
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STANDSTILL_MS);
/** Resolves when what was asked so far is on the wire. */
const written = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('the replies that came while the process stood still are taken', async () => {
  const replies = Promise.all([
    redis.echo('command'),
    redis.eval("return 'script'", 0),
    redis.pipeline().echo('pipeline').exec(),
    redis.multi().echo('transaction').exec(),
  ]);
  await written();
  standStill();
  expect(await replies).toEqual([
    'command',
    'script',
    [[null, 'pipeline']],
    [[null, 'transaction']],
  ]);
});

test('a command without a reply fails after two seconds, and the connection serves the next', async () => {
  await server.kill('SIGSTOP');
  const askedAt = performance.now();
  try {
    await expect(redis.echo('unheard')).rejects.toThrow('within 2000 ms');
    expect(performance.now() - askedAt).toBeGreaterThan(1900);
  } finally {
    await server.kill('SIGCONT');
  }
  expect(await redis.echo('heard')).toBe('heard');
});
