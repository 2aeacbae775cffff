import { expect, test } from '@jest/globals';
import { outcomes, states, type JobState } from '../../src/policy/outcome.ts';

test('a job waits, runs, and ends in one of five ways', () => {
  const all: readonly JobState[] = states;
  expect(all).toEqual([
    'waiting',
    'running',
    'completed',
    'failed',
    'cancelled',
    'evicted',
    'expired',
  ]);
  expect(outcomes).toEqual(all.slice(2));
});
