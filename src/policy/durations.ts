import type { Estimate } from './plan.ts';

/** Newest samples of a series that count. */
export const SAMPLES_KEPT = 64;
/** Cold runs of a model and route from which on they are believed over warm runs plus a load. */
const COLD_SAMPLES = 3;
/** Samples below which the spread is not believed to be smaller than the configured one. */
const SPREAD_SAMPLES = 8;

/** Times measured for one model and route, newest last, in milliseconds of GPU time. */
export interface DurationSeries {
  /** Canonical id. */
  readonly model: string;
  readonly route: string;
  /** What the route makes: text, image, audio, video or other. */
  readonly kind: string;
  /** Whether the model had to be loaded first; its load is part of these times. */
  readonly cold: boolean;
  readonly ms: readonly number[];
}

/** Load times of one model, newest last, in milliseconds. */
export interface LoadSeries {
  readonly model: string;
  readonly ms: readonly number[];
}

/** A configured guess; p90 is not below p50. */
export interface DurationGuess {
  readonly p50Seconds: number;
  readonly p90Seconds: number;
}

/** What is assumed before anything was measured. */
export interface DurationGuesses {
  readonly text: DurationGuess;
  readonly image: DurationGuess;
  readonly audio: DurationGuess;
  readonly video: DurationGuess;
  readonly other: DurationGuess;
  /** A load. */
  readonly loadSeconds: DurationGuess;
  /** Warm runs of single models, by canonical id. */
  readonly models: Readonly<Record<string, DurationGuess>>;
}

/** What an estimate rests on, the best first. */
export type DurationBasis = 'route' | 'model' | 'configured-model' | 'kind' | 'configured-kind';

/** How long a job takes, in milliseconds of GPU time. */
export interface DurationEstimate extends Estimate {
  /** 99 of 100 take at most so long; a guess below a hundred samples. */
  readonly p99Ms: number;
  /** Samples of this very model and route it rests on; 0 when it rests on anything else. */
  readonly samples: number;
  readonly basis: DurationBasis;
}

/** How long a load takes, in milliseconds. */
export interface LoadEstimate extends Estimate {
  readonly p99Ms: number;
  /** Loads of this very model it rests on. */
  readonly samples: number;
}

interface Quantiles extends Estimate {
  readonly p99Ms: number;
}

/**
 * Estimates from what was measured. A warm run, the first of these that is known:
 *
 * 1. runs of the model on the route, 2. of the model for the same kind, 3. the model's configured guess, 4. runs of
 * other models for that kind, 5. the kind's configured guess.
 *
 * A cold run: three or more cold runs of the model on the route; else a warm run and a load, one after the other. A
 * load: the model's own loads, else those of all models, else the configured guess. With fewer than eight samples the
 * spread is at least in the proportion of the configured guess.
 */
export class Durations {
  private readonly guesses: DurationGuesses;
  private readonly samples = new Map<string, number[]>();
  /** Lists that have been put in order, which happens when they are first asked for. */
  private readonly ordered = new WeakSet<readonly number[]>();

  constructor(
    runs: readonly DurationSeries[],
    loads: readonly LoadSeries[],
    guesses: DurationGuesses,
  ) {
    this.guesses = guesses;
    for (const { model, route, kind, cold, ms } of runs) {
      this.add(runKey(model, route, cold), ms);
      if (cold) continue;
      this.add(modelKey(model, kind), ms);
      this.add(kindKey(kind), ms);
    }
    for (const { model, ms } of loads) {
      this.add(loadKey(model), ms);
      this.add(ALL_LOADS, ms);
    }
  }

  /** How long a job takes; `cold`: its model must be loaded first. */
  estimateOf(model: string, route: string, kind: string, cold: boolean): DurationEstimate {
    if (!cold) return this.warm(model, route, kind);
    const guess = inARow(guessed(this.guessFor(model, kind)), guessed(this.guesses.loadSeconds));
    const own = this.get(runKey(model, route, true));
    if (own.length >= COLD_SAMPLES)
      return { ...measured(own, guess), samples: own.length, basis: 'route' };
    const warm = this.warm(model, route, kind);
    return { ...warm, ...inARow(warm, this.loadOf(model)) };
  }

  /** How long loading the model takes. */
  loadOf(model: string): LoadEstimate {
    const guess = guessed(this.guesses.loadSeconds);
    const own = this.get(loadKey(model));
    if (own.length > 0) return { ...measured(own, guess), samples: own.length };
    const all = this.get(ALL_LOADS);
    return { ...(all.length > 0 ? measured(all, guess) : guess), samples: 0 };
  }

  private warm(model: string, route: string, kind: string): DurationEstimate {
    const guess = guessed(this.guessFor(model, kind));
    const own = this.get(runKey(model, route, false));
    if (own.length > 0) return { ...measured(own, guess), samples: own.length, basis: 'route' }; // 1
    const ofModel = this.get(modelKey(model, kind));
    if (ofModel.length > 0) return { ...measured(ofModel, guess), samples: 0, basis: 'model' }; // 2
    if (Object.hasOwn(this.guesses.models, model))
      return { ...guess, samples: 0, basis: 'configured-model' }; // 3
    const ofKind = this.get(kindKey(kind));
    if (ofKind.length > 0) return { ...measured(ofKind, guess), samples: 0, basis: 'kind' }; // 4
    return { ...guess, samples: 0, basis: 'configured-kind' }; // 5
  }

  private guessFor(model: string, kind: string): DurationGuess {
    const { text, image, audio, video, other, models } = this.guesses;
    const own = Object.hasOwn(models, model) ? models[model] : undefined;
    return own ?? new Map(Object.entries({ text, image, audio, video })).get(kind) ?? other;
  }

  private add(key: string, ms: readonly number[]): void {
    const list = this.samples.get(key) ?? [];
    list.push(...ms.slice(-SAMPLES_KEPT));
    this.samples.set(key, list);
  }

  /** In ascending order; empty when there are none. */
  private get(key: string): readonly number[] {
    const list = this.samples.get(key) ?? [];
    if (!this.ordered.has(list)) list.sort((a, b) => a - b);
    this.ordered.add(list);
    return list;
  }
}

const runKey = (model: string, route: string, cold: boolean): string =>
  JSON.stringify(['run', model, route, cold]);
const modelKey = (model: string, kind: string): string => JSON.stringify(['model', model, kind]);
const kindKey = (kind: string): string => JSON.stringify(['kind', kind]);
const loadKey = (model: string): string => JSON.stringify(['load', model]);
const ALL_LOADS = 'loads';

function guessed({ p50Seconds, p90Seconds }: DurationGuess): Quantiles {
  const [p50Ms, p90Ms] = [p50Seconds * 1000, p90Seconds * 1000];
  return { p50Ms, p90Ms, p99Ms: 2 * p90Ms - p50Ms };
}

/** Quantiles of at least one sample, in ascending order; of few, spread no less than the guess is. */
function measured(sorted: readonly number[], guess: Quantiles): Quantiles {
  const p50Ms = quantile(sorted, 0.5);
  const least = (guessMs: number): number =>
    sorted.length < SPREAD_SAMPLES ? Math.round((p50Ms * guessMs) / guess.p50Ms) : 0;
  return {
    p50Ms,
    p90Ms: Math.max(quantile(sorted, 0.9), least(guess.p90Ms)),
    p99Ms: Math.max(quantile(sorted, 0.99), least(guess.p99Ms)),
  };
}

/** The nearest rank: the smallest sample that at least that share of all is not above. */
function quantile(sorted: readonly number[], share: number): number {
  return Number(sorted[Math.ceil(share * sorted.length) - 1]);
}

/** Two things one after the other; what each may take longer is taken as independent. */
function inARow(one: Quantiles, other: Quantiles): Quantiles {
  const p50Ms = one.p50Ms + other.p50Ms;
  const beyond = (a: number, b: number): number => p50Ms + Math.round(Math.hypot(a, b));
  return {
    p50Ms,
    p90Ms: beyond(one.p90Ms - one.p50Ms, other.p90Ms - other.p50Ms),
    p99Ms: beyond(one.p99Ms - one.p50Ms, other.p99Ms - other.p50Ms),
  };
}
