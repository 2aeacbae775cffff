import { expect, test } from '@jest/globals';
import { restartPolicy } from '../../src/supervise/restart-policy.ts';

test('waits double from 0.1 s to 5 s when deaths come far enough apart', () => {
  const policy = restartPolicy();
  const waits = Array.from({ length: 9 }, (_, index) =>
    policy.afterDeath(index * 15_001, 14_000),
  ).map((verdict) => (verdict === 'give_up' ? verdict : verdict.restartAfterMs));
  expect(waits).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
});

test('begins again at 0.1 s after a life of a minute', () => {
  const policy = restartPolicy();
  policy.afterDeath(0, 10);
  policy.afterDeath(1000, 10);
  expect(policy.afterDeath(62_000, 60_000)).toEqual({ restartAfterMs: 100 });
  expect(policy.afterDeath(63_000, 59_999)).toEqual({ restartAfterMs: 200 });
});

test('gives up at the fifth death within a minute, not at five in more', () => {
  const quick = restartPolicy();
  for (const nowMs of [0, 15_000, 30_000, 45_000]) {
    expect(quick.afterDeath(nowMs, 10)).not.toBe('give_up');
  }
  expect(quick.afterDeath(59_999, 10)).toBe('give_up');

  const slow = restartPolicy();
  for (const nowMs of [0, 15_000, 30_000, 45_000]) slow.afterDeath(nowMs, 10);
  expect(slow.afterDeath(60_000, 10)).not.toBe('give_up');
});
