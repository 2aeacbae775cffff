import type { JobState } from '../policy/outcome.ts';
import type { JobFacts } from './job-queue.ts';

/** What is on record of one job. Times are unix milliseconds of Redis TIME. */
export interface JobRecord {
  readonly id: string;
  readonly facts: JobFacts;
  readonly state: JobState;
  /** Place among all submissions of the pool. */
  readonly arrival: number;
  readonly createdMs: number;
  /** The last dispatch; null: none yet. */
  readonly startedMs: number | null;
  readonly endedMs: number | null;
  /** When record and answer are forgotten; null while it has not ended. */
  readonly expiresMs: number | null;
  /** Attempts begun; one that was handed back does not count. */
  readonly attempts: number;
  /** Dispatches, those handed back included. */
  readonly runs: number;
  /** Why, when it ended otherwise than completed. */
  readonly error: { readonly code: string; readonly message: string } | null;
  /** GPU time of the last attempt, the load it forced included; null while it is not known. */
  readonly gpuMs: number | null;
  /** Part of it in which the model was loaded. */
  readonly swapMs: number | null;
  /** When it was not in the queue, in their order; `toMs` null: it still is not. Times are unix milliseconds. */
  readonly absences: readonly {
    readonly why: 'paused' | 'ended';
    readonly fromMs: number;
    readonly toMs: number | null;
  }[];
  /** What the worker last said of the job's lease; null: nothing. */
  readonly lease: Readonly<Record<string, unknown>> | null;
  /** How far the log of its answer has come; null: there is none, or it is kept no more. */
  readonly answer: {
    readonly run: number;
    /** Body bytes of that run; 0 for one that failed. */
    readonly bytes: number;
    /** Whether its end has come and was meant. */
    readonly isWhole: boolean;
  } | null;
}

/** Which jobs a list is of. */
export interface JobListQuery {
  /** Null: everybody's. */
  readonly member: string | null;
  readonly states: readonly JobState[] | null;
  readonly model: string | null;
  readonly band: string | null;
  /** Only jobs that arrived before this one; null: from the newest. */
  readonly before: number | null;
  /** Most jobs to return. */
  readonly limit: number;
}

/** A page of jobs, newest first. */
export interface JobListPage {
  readonly jobs: readonly JobRecord[];
  /** Ask for what came `before` it to read on; null: that was all. */
  readonly next: number | null;
}

/** What became of a job that was to be cancelled. `ended`: before, in whatever way. */
export type CancelFate = 'absent' | 'ended' | 'cancelled' | 'cancelling';

/** The jobs as their clients may ask for them. All methods throw GatewayError `redis_unavailable` within 2.5 s. */
export interface JobRecords {
  /** Undefined: there is no such job (any more). */
  read(jobId: string): Promise<JobRecord | undefined>;
  /** May return fewer jobs than `limit` although there are more, when few of them fit. */
  list(query: JobListQuery): Promise<JobListPage>;
  /** Ends a waiting job, or has the worker abort a running one. */
  cancel(jobId: string): Promise<CancelFate>;
}
