import type { DurationEstimate, LoadEstimate } from '../policy/durations.ts';
import type { JobKind } from './telemetry.ts';

/** GPU time of one run that completed. */
export interface DurationSample {
  /** Canonical id. */
  model: string;
  /** The route's pattern. */
  route: string;
  kind: JobKind;
  /** The model was not resident when the job was dispatched; its load is part of the time. */
  cold: boolean;
  /** From dispatch to end, in milliseconds, 0 or more. */
  ms: number;
}

/**
 * How long jobs take, learned from those that completed. The worker records; every process estimates from what it read
 * last, at once. The newest samples of each model and route count; series long unused are forgotten.
 */
export interface DurationBook {
  /** Adds a completed run. Does nothing while the book cannot be reached: a lost sample is no loss. Never throws. */
  record(sample: DurationSample): Promise<void>;
  /** Adds a load of a model that ended well, in milliseconds. Never throws. */
  recordLoad(load: { model: string; ms: number }): Promise<void>;
  /** How long a job takes. Canonical id. */
  estimateOf(model: string, route: string, kind: JobKind, cold: boolean): DurationEstimate;
  /** How long loading a model takes. Canonical id. */
  loadOf(model: string): LoadEstimate;
}
