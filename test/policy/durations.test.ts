import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { Durations, SAMPLES_KEPT } from '../../src/policy/durations.ts';
import type { DurationGuesses, DurationSeries } from '../../src/policy/durations.ts';

const guesses: DurationGuesses = {
  text: { p50Seconds: 10, p90Seconds: 40 },
  image: { p50Seconds: 20, p90Seconds: 60 },
  audio: { p50Seconds: 15, p90Seconds: 60 },
  video: { p50Seconds: 240, p90Seconds: 480 },
  other: { p50Seconds: 30, p90Seconds: 120 },
  loadSeconds: { p50Seconds: 20, p90Seconds: 60 },
  models: { film: { p50Seconds: 300, p90Seconds: 900 } },
};

const CHAT = '/v1/chat/completions';
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

function series(ms: readonly number[], facts: Partial<DurationSeries> = {}): DurationSeries {
  return { model: 'm', route: CHAT, kind: 'text', cold: false, ms, ...facts };
}

describe('a warm run', () => {
  test('of which nothing is known takes what is configured for its kind', () => {
    const durations = new Durations([], [], guesses);
    expect(durations.estimateOf('m', CHAT, 'text', false)).toEqual({
      p50Ms: 10_000,
      p90Ms: 40_000,
      p99Ms: 70_000,
      samples: 0,
      basis: 'configured-kind',
    });
    const p50Of = (kind: string): number => durations.estimateOf('m', 'r', kind, false).p50Ms;
    expect(['image', 'audio', 'video', 'other', 'never heard of'].map(p50Of)).toEqual([
      20_000, 15_000, 240_000, 30_000, 30_000,
    ]);
  });

  test('takes the nearest rank of the samples of its model and route', () => {
    const durations = new Durations([series(upTo(50).toReversed())], [], guesses);
    const estimate = { p50Ms: 25, p90Ms: 45, p99Ms: 50, samples: 50, basis: 'route' };
    expect(durations.estimateOf('m', CHAT, 'text', false)).toEqual(estimate);
    expect(durations.estimateOf('m', CHAT, 'text', false)).toEqual(estimate);
  });

  test('of few samples spreads at least as much as the guess', () => {
    const durations = new Durations([series([1000, 1100])], [], guesses);
    expect(durations.estimateOf('m', CHAT, 'text', false)).toMatchObject({
      p50Ms: 1000,
      p90Ms: 4000,
      p99Ms: 7000,
      samples: 2,
    });
  });

  test('forgets all but the newest samples', () => {
    const ms = [...upTo(100).map(() => 9999), ...upTo(SAMPLES_KEPT).map(() => 5)];
    const durations = new Durations([series(ms)], [], guesses);
    expect(durations.estimateOf('m', CHAT, 'text', false)).toMatchObject({
      p99Ms: 5,
      samples: SAMPLES_KEPT,
    });
  });

  test('falls back to the model, its configured guess, the kind, and what is configured', () => {
    const runs = [
      series([700], { route: '/v1/completions' }),
      series([90], { model: 'film', kind: 'video', route: 'a' }),
      series([80], { model: 'other', kind: 'image' }),
    ];
    const durations = new Durations(runs, [], guesses);
    const basisOf = (model: string, kind: string) => {
      const { p50Ms, samples, basis } = durations.estimateOf(model, 'new route', kind, false);
      return [p50Ms, samples, basis];
    };
    expect(basisOf('m', 'text')).toEqual([700, 0, 'model']);
    expect(basisOf('film', 'video')).toEqual([90, 0, 'model']);
    expect(basisOf('film', 'image')).toEqual([300_000, 0, 'configured-model']);
    expect(basisOf('new', 'image')).toEqual([80, 0, 'kind']);
    expect(basisOf('new', 'audio')).toEqual([15_000, 0, 'configured-kind']);
  });

  test('does not learn from cold runs', () => {
    const durations = new Durations([series([50_000], { cold: true })], [], guesses);
    expect(durations.estimateOf('m', CHAT, 'text', false).basis).toBe('configured-kind');
  });

  test('is not configured by a name every object has', () => {
    const durations = new Durations([], [], guesses);
    expect(durations.estimateOf('constructor', CHAT, 'text', false).p50Ms).toBe(10_000);
  });
});

describe('a cold run', () => {
  const warm = series(upTo(20).map(() => 1000));
  const load = { model: 'm', ms: upTo(20).map(() => 30_000) };

  test('is a warm run and a load while there are fewer than three of it', () => {
    const cold = series([5, 5], { cold: true });
    expect(
      new Durations([warm, cold], [load], guesses).estimateOf('m', CHAT, 'text', true),
    ).toEqual({ p50Ms: 31_000, p90Ms: 31_000, p99Ms: 31_000, samples: 20, basis: 'route' });
  });

  test('is what was measured from three of it on', () => {
    const cold = series([25_000, 26_000, 27_000], { cold: true });
    expect(
      new Durations([warm, cold], [load], guesses).estimateOf('m', CHAT, 'text', true),
    ).toMatchObject({ p50Ms: 26_000, samples: 3, basis: 'route' });
  });

  test('adds what either part may take longer as if they were independent', () => {
    expect(new Durations([], [], guesses).estimateOf('m', CHAT, 'text', true)).toEqual({
      p50Ms: 30_000,
      p90Ms: 30_000 + 50_000,
      p99Ms: 30_000 + 100_000,
      samples: 0,
      basis: 'configured-kind',
    });
  });
});

describe('a load', () => {
  const durations = new Durations([], [{ model: 'm', ms: upTo(10) }], guesses);

  test('takes what loads of the model took, else those of all, else what is configured', () => {
    expect(durations.loadOf('m')).toEqual({ p50Ms: 5, p90Ms: 9, p99Ms: 10, samples: 10 });
    expect(durations.loadOf('new')).toEqual({ p50Ms: 5, p90Ms: 9, p99Ms: 10, samples: 0 });
    expect(new Durations([], [], guesses).loadOf('m')).toEqual({
      p50Ms: 20_000,
      p90Ms: 60_000,
      p99Ms: 100_000,
      samples: 0,
    });
  });
});

test('the quantiles never cross, and lie among what was measured once there are eight samples', () => {
  const times = fc.array(fc.nat(10_000_000), { minLength: 1, maxLength: 100 });
  fc.assert(
    fc.property(times, fc.boolean(), (ms, cold) => {
      const durations = new Durations([series(ms, { cold })], [], guesses);
      const { p50Ms, p90Ms, p99Ms, samples } = durations.estimateOf('m', CHAT, 'text', cold);
      expect(p50Ms).toBeLessThanOrEqual(p90Ms);
      expect(p90Ms).toBeLessThanOrEqual(p99Ms);
      if (samples >= 8) expect(p99Ms).toBeLessThanOrEqual(Math.max(...ms));
    }),
  );
});
