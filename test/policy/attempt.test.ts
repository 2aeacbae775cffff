import { describe, expect, test } from '@jest/globals';
import { afterFailedAttempt } from '../../src/policy/attempt.ts';

const attemptRules = { maxAttempts: 5, firstBackoffMs: 500, maxBackoffMs: 10_000 };

const failed = (attempt: number, more: { delivered?: boolean; askedMs?: number } = {}) =>
  afterFailedAttempt({ attempt, delivered: false, ...more }, attemptRules, 0);

describe('a failed attempt', () => {
  test('is repeated after half a second, then twice as long each time', () => {
    expect([1, 2, 3, 4].map((attempt) => failed(attempt))).toEqual([
      { retryAfterMs: 500 },
      { retryAfterMs: 1000 },
      { retryAfterMs: 2000 },
      { retryAfterMs: 4000 },
    ]);
  });

  test('is not repeated after the last', () => {
    expect(failed(5)).toBe('give-up');
    expect(failed(6)).toBe('give-up');
  });

  test('is not repeated once a byte of the answer may have been seen', () => {
    expect(failed(1, { delivered: true })).toBe('give-up');
  });

  test('waits as long as the model server asked, up to the longest backoff', () => {
    expect(failed(1, { askedMs: 7000 })).toEqual({ retryAfterMs: 7000 });
    expect(failed(1, { askedMs: 99_000 })).toEqual({ retryAfterMs: 10_000 });
    expect(failed(3, { askedMs: 1 })).toEqual({ retryAfterMs: 2000 });
  });

  test('never waits longer than the longest backoff and a quarter', () => {
    const many = { ...attemptRules, maxAttempts: 100 };
    const verdict = afterFailedAttempt({ attempt: 60, delivered: false }, many, 0.999);
    expect(verdict).toEqual({ retryAfterMs: 12_498 });
  });

  test('is spread by chance so that jobs which failed together do not come back together', () => {
    const at = (chance: number) =>
      afterFailedAttempt({ attempt: 1, delivered: false }, attemptRules, chance);
    expect(at(0)).toEqual({ retryAfterMs: 500 });
    expect(at(0.5)).toEqual({ retryAfterMs: 563 });
  });
});
