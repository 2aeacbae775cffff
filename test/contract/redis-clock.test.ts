import { expect, test } from '@jest/globals';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';

test('a clock without a reading believes nothing and lets every wait be over', () => {
  const clock = new RedisClock();
  expect(clock.estimate()).toBe(0);
  expect(clock.latest()).toBe(Infinity);
});

test('a clock that is not trusted after a reconnect still knows when a hold of the GPU ends', () => {
  const clock = new RedisClock();
  const redisMs = 1_800_000_000_000;
  clock.observe(redisMs, performance.now());
  clock.distrust();
  expect(clock.estimate()).toBe(0);
  expect(clock.latest()).toBeGreaterThanOrEqual(redisMs);
  expect(clock.latest()).toBeLessThan(redisMs + 1000);
});
