import type { ResponseHead, ResponseLogWriter } from './response-log.ts';
import type { JobKind } from './telemetry.ts';

/** The model of a job that asks for none: one that stops models, or changes what their ids mean. */
export const NO_MODEL = '(none)';

/** A job's place in its film; `shot` counts from 1. */
export interface FilmShot {
  readonly id: string;
  readonly shot: number;
}

/** Everything BullMQ and its board may see of a job: no body, no header value, no credential. */
export interface JobFacts {
  /** Layout of this record; newer ones are refused by older code. */
  version: 1;
  method: string;
  /** The route's pattern, for example `/v1/images/generations` or `/upstream/{model}/…`. */
  route: string;
  kind: JobKind;
  model: string;
  /** Whether the client asked for a streamed answer. */
  stream: boolean;
  member: string;
  tier: string;
  /** Base priority in points after floor and ceiling; higher runs sooner. */
  base: number;
  band: string;
  /** `sync`: a connection waits, and the job ends with it. */
  mode: 'sync' | 'async';
  bodyBytes: number;
  /** Lower-case hex SHA-256 of the body's bytes. */
  bodySha256: string;
  /** Of a shot: its film, which goes on in the step in which this job is settled. */
  film?: FilmShot;
}

/** What one member may have waiting at one time; null: no bound of its own. */
export interface MemberCaps {
  /** Waiting jobs. */
  readonly waiting: number | null;
  /** Bytes of request bodies of waiting jobs. */
  readonly bytes: number | null;
}

/** A job to be queued. */
export interface NewJob {
  /** Lower-case UUIDv4, chosen before the submission so that a repeat of it is harmless. */
  id: string;
  facts: JobFacts;
  /** Points it competes with: base priority plus tier bonus. */
  points: number;
  /** Sealed method, target and headers. */
  sealedHead: Buffer;
  /** The body when it is kept in Redis, else null. */
  body: Buffer | null;
  /** Caps of the job's member. */
  caps: MemberCaps;
  /** A submission with the same key, by the same member, is this one. */
  idempotency?: IdempotencyKey;
  deadlines?: JobDeadlines;
  /** Sealed address that is told of the end. */
  sealedWebhook?: Buffer;
}

/** What an `Idempotency-Key` stands for. */
export interface IdempotencyKey {
  /** SHA-256 of member and key, in hex. */
  name: string;
  /** SHA-256 of all that makes a request another one, in hex. */
  request: string;
}

/** When a job is of no use any more. */
export interface JobDeadlines {
  /** It expires unless it has started: so long after its submission, or at a time in unix milliseconds. */
  start?: { withinMs: number } | { byMs: number };
  /** It is cancelled, waiting or running, so long after its submission. */
  cancelAfterMs?: number;
}

/** A job that is stored. */
export interface Submitted {
  /** The new job's, or that of the first one with the same key. */
  jobId: string;
  arrival: number;
  /** Redis TIME. */
  nowMs: number;
  /** False: an earlier submission with the same key made it; it may have ended, or be gone. */
  isNew: boolean;
}

/** What became of a job its client gave up. */
export type AbandonFate = 'evicted' | 'aborting' | 'settled';

/** Where the queue has a job right now. */
export type JobPlace = 'waiting' | 'running' | 'ended' | 'absent';

/** Something that happened to a job, as every process hears it. */
export interface JobEvent {
  kind: 'start' | 'wait' | 'end';
  jobId: string;
  /** For `end`: outcome and code, parted by a blank. */
  detail: string;
}

/** The ingress's side of the queue. All methods throw GatewayError `redis_unavailable` within 2.5 s. */
export interface JobQueue {
  /**
   * Durable when it resolves. `queue_full` when the pool's waiting cap is reached, `member_queue_full` when one of the
   * member's is, `idempotency_mismatch` when the key came with another request before.
   */
  submit(job: NewJob): Promise<Submitted>;
  /** Gives up a job for its client: waiting, it is removed; running, the worker aborts it. */
  abandon(jobId: string, code: 'client_closed' | 'cancelled'): Promise<AbandonFate>;
  /**
   * The connection that submitted (or repeated) a job with an Idempotency-Key under the id `client` has gone: without
   * another one, or a repeat in time, the job is given up.
   */
  detach(jobId: string, client: string): Promise<void>;
  /** The truth about jobs whose events may have been missed. */
  inspect(jobIds: readonly string[]): Promise<JobPlace[]>;
}

/** A job the worker just took off the queue. */
export interface ClaimedJob {
  id: string;
  facts: JobFacts;
  /** Counts dispatches from 1 and fences the response log; grows also when an attempt was handed back. */
  run: number;
  /** Attempts used up before this one. */
  attemptsMade: number;
  /** Milliseconds of Redis TIME from submission to this dispatch. */
  waitedMs: number;
  sealedHead: Buffer;
  body: Buffer | null;
  /** What an earlier run left at the model server; it may be going on there. */
  taken?: TakenWork;
  /** Milliseconds for which the job has held the GPU already; 0 unless it was taken up from an earlier worker. */
  ranBeforeMs: number;
}

/** Work that the model server took on for a job and goes on with after its answer. */
export interface TakenWork {
  /** The model server's id of it. */
  id: string;
  /** The answer that told of it. */
  head: ResponseHead;
  body: Buffer;
}

/** What a run came to. */
export type RunResult =
  | { kind: 'completed' }
  | { kind: 'failed'; code: string; message: string }
  | { kind: 'cancelled'; code: string; forget: boolean }
  | { kind: 'retry'; code: string; message: string; delayMs: number }
  | { kind: 'handed-back' };

/** Why a run is told to stop; the abort signal's reason. */
export class RunAborted extends Error {
  readonly why: 'client_closed' | 'cancelled' | 'shutting_down' | 'fenced';

  constructor(why: RunAborted['why']) {
    super(`run aborted: ${why}`);
    this.name = 'RunAborted';
    this.why = why;
  }
}

/** Runs one claimed job to its result; never throws for anything the model server or the client did. */
export type RunJob = (
  job: ClaimedJob,
  log: ResponseLogWriter,
  signal: AbortSignal,
) => Promise<RunResult>;
