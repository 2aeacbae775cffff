import type { Score, Term } from '../policy/effective-priority.ts';

/** A waiting job as a dispatch record shows it. */
export interface RecordedJob {
  readonly id: string;
  readonly member: string;
  readonly tier: string;
  readonly band: string;
  /** Base priority in points. */
  readonly base: number;
  readonly model: string;
  /** Unix milliseconds. */
  readonly arrivalMs: number;
  readonly score: Score;
}

/** Why one job got the GPU, and who did not: what it takes to answer "why did mine wait" later. */
export interface DispatchRecord {
  readonly kind: 'dispatch';
  /** Unix milliseconds, Redis TIME. */
  readonly atMs: number;
  readonly winner: RecordedJob;
  /** GPU time, divided by weight, until the winner's turn; above 0 it went by its points. */
  readonly turnMs: number;
  /** Members whose lane had its turn before. */
  readonly passedOver: number;
  /** The head whose turn it would have been in each band without the winner. */
  readonly losers: Readonly<Record<string, RecordedJob>>;
  /** For each term without which another job would have gone: that job. */
  readonly displaced: Partial<Readonly<Record<Term, string>>>;
  /** Jobs that wait in each band, the winner not counted. */
  readonly waiting: Readonly<Record<string, number>>;
  readonly residentModel: string | null;
  /** Whether the winner's model has to be loaded first. */
  readonly isSwap: boolean;
}

/** What a run came to. */
export interface EndRecord {
  readonly kind: 'end' | 'back';
  readonly atMs: number;
  readonly id: string;
  /** GPU time it used, in milliseconds. */
  readonly usedMs: number;
  /** Part of it in which the model server loaded the job's model; 0 when it told of no load. */
  readonly loadMs: number;
}

/** The last dispatches, kept for a while (`retention.dispatchRecords`). */
export interface DispatchLog {
  /** Adds a record. Never throws and never waits: a lost record is no loss to a job. */
  add(record: DispatchRecord | EndRecord): void;
}

/** Reads them back. Its methods throw GatewayError `redis_unavailable` within 2.5 s. */
export interface DispatchHistory {
  /** Since when dispatches are on record, unix milliseconds; 0: none was forgotten. */
  since(): Promise<number>;
  /**
   * The records of a time, oldest first, a page at a time; with the dispatch of the run that was going on at its
   * beginning. Times are unix milliseconds.
   */
  between(fromMs: number, toMs: number): AsyncIterable<readonly (DispatchRecord | EndRecord)[]>;
}
