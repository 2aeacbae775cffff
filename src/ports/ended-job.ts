import type { Outcome } from '../policy/outcome.ts';
import type { JobFacts } from './job-queue.ts';

/** A job that has ended and whose client asked to be told: all that can be told of it. */
export interface EndedJob {
  /** Names this end: the same however often it is told, another one when the job is run again. */
  eventId: string;
  jobId: string;
  /** Sealed address of whoever asked. */
  sealedAddress: Buffer;
  outcome: Outcome;
  /** Error code; empty when completed. */
  code: string;
  message: string;
  facts: JobFacts;
  /** Redis TIME, in ms; `startedMs` is of the last attempt, null when there was none. */
  createdMs: number;
  startedMs: number | null;
  endedMs: number;
  attempts: number;
  gpuMs: number;
}
