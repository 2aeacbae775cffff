import { describe, expect, test } from '@jest/globals';
import { Fronts } from '../../src/policy/fronts.ts';
import { aJob } from '../support/builders.ts';

describe('fronts', () => {
  test('are the oldest of each model, base and tier, whatever the order of coming and going', () => {
    const fronts = new Fronts();
    const jobs = [5, 3, 9, 1, 7].map((arrivalMs) => aJob({ id: `at-${arrivalMs}`, arrivalMs }));
    for (const job of jobs) fronts.add(job, 0);
    const oldest = () => [...fronts].map((front) => front.job.id as string);
    expect(oldest()).toEqual(['at-1']);
    fronts.delete(jobs[1]!);
    fronts.delete(jobs[3]!);
    expect(oldest()).toEqual(['at-5']);
    fronts.add(aJob({ id: 'at-2', arrivalMs: 2 }), 0);
    fronts.add(aJob({ id: 'other', arrivalMs: 4, model: 'other' }), 0);
    expect(oldest().toSorted()).toEqual(['at-2', 'other']);
    fronts.delete(aJob({ id: 'never added', tier: 'max' }));
    expect(oldest()).toHaveLength(2);
  });

  test('stay right over many comings and goings', () => {
    const fronts = new Fronts();
    const jobs = Array.from({ length: 400 }, (_, arrivalMs) => aJob({ arrivalMs }));
    for (const job of jobs) fronts.add(job, 0);
    for (const job of jobs.slice(0, 399)) {
      expect([...fronts][0]?.job).toBe(job);
      fronts.delete(job);
    }
    fronts.delete(jobs[399]!);
    expect([...fronts]).toEqual([]);
  });
});
