import type { ErrorCode, FailureCode, RejectCode } from '../errors.ts';
import type { Term } from '../policy/effective-priority.ts';
import type { Outcome } from '../policy/outcome.ts';
import type { PriorityNotice } from '../policy/priority.ts';
import type { Logger } from './logger.ts';

/** What a job makes; picks its lease and its run histogram. `other`: an upstream route of unknown purpose. */
export type JobKind = 'text' | 'image' | 'audio' | 'video' | 'other';

/** Whether the worker that ran the job is trusted (`worker.trusted`). */
export type WorkerTrust = 'trusted' | 'untrusted';

/** Codes a request can be refused with before it becomes a job. */
export type RefusalCode =
  | RejectCode
  | Extract<ErrorCode, 'model_unavailable' | 'model_server_unreachable' | 'internal_error'>;

/** Which job a fact is about. Ids and the member reach log lines, never a metric. */
interface JobFact {
  jobId: string;
  memberId: string;
  /** Named band of the job's base priority. */
  band: string;
  /** As the job asks for it; a metric says `other` for one that the model server does not list. */
  model: string;
}

/** A job was made durable and waits. */
export interface JobAdmitted extends JobFact {
  tier: string;
  kind: JobKind;
  /** Points after floor and ceiling. */
  basePriority: number;
  bodyBytes: number;
  /** Whether the client was told to come back for the answer (`Prefer: respond-async`). */
  isAsync: boolean;
}

/** A request was refused and no job exists. */
export interface JobRejected {
  code: RefusalCode;
  memberId?: string;
  model?: string;
}

/** A job was picked and goes upstream. */
export interface JobDispatched extends JobFact {
  tier: string;
  kind: JobKind;
  /** Counted from 1; an attempt that was handed back does not count. */
  attempt: number;
  /** From admission to this dispatch; the wait histogram takes first attempts only. */
  waitedMs: number;
}

/** GPU time of one attempt, from dispatch to its end, the swap it forced included. */
interface AttemptFact extends JobFact {
  kind: JobKind;
  attempt: number;
  ranMs: number;
}

/**
 * A job reached its outcome; said once, by the process that settled it. `attempt` and `ranMs` are those of
 * the last attempt, absent for a job that never reached the GPU.
 */
export interface JobSettled extends JobFact {
  kind: JobKind;
  outcome: Outcome;
  /** Why, when the outcome is not completed. */
  code?: ErrorCode;
  attempt?: number;
  /** GPU time of the last attempt, the swap it forced included. */
  ranMs?: number;
  /** From admission to the last dispatch, or to the outcome of a job that was never dispatched. */
  waitedMs: number;
}

/** What an attempt to tell of a job's end came to. */
export type WebhookResult = 'delivered' | 'retried' | 'given_up';

/** One attempt to call a webhook. Nothing of the address but its host is told: the rest may hold a secret. */
export interface WebhookTried {
  eventId: string;
  jobId: string;
  memberId: string;
  result: WebhookResult;
  /** Counted from 1. */
  attempt: number;
  host: string;
  /** Why it was not delivered. */
  reason?: string;
}

/** How a request to the model server's routes ended for its client. */
export interface RequestEnd {
  method: string;
  /** Without its query. */
  path: string;
  /** What the client got; 499: it left before its answer was complete. */
  status: number;
  /** How far the request had come: its body, its place in the queue, its run, its answer. */
  phase: 'arriving' | 'waiting' | 'running' | 'answering';
  /** Since its head arrived. */
  ms: number;
  /** The error that ended it, if Berth made one. */
  code?: ErrorCode;
  jobId?: string;
}

/** An attempt failed and the job waits for another. */
export interface JobRetried extends AttemptFact {
  code: FailureCode;
  /** Backoff before the job is eligible again. */
  delayMs: number;
}

/**
 * An attempt went back to the queue without being used up: our own shutdown, or a worker that died
 * (`orphaned`: found at the next start; `stalled`: its lock lapsed).
 */
export interface JobHandedBack {
  jobId: string;
  because: 'shutting_down' | 'orphaned' | 'stalled';
  /** GPU time the attempt used, where this process knows it. */
  ranMs?: number;
}

/** What a process tells of Redis's promise to keep jobs. */
export interface RedisDurability {
  /** Whether the append-only file is on: without it a Redis crash forgets jobs. */
  hasAof: boolean;
  /** Whether the memory policy may evict keys: jobs would vanish. */
  mayEvict: boolean;
}

/** The scorer's view of one band. */
export interface BandBacklog {
  waiting: number;
  /** Wait of the oldest waiting job; 0 when none waits. */
  oldestWaitMs: number;
}

/**
 * Takes plain facts; one fact makes its log line and moves its metrics, so that the two cannot disagree.
 * No method throws or waits. Callers pass ids, names and numbers, never prompt text, answers or credentials.
 */
export interface Telemetry {
  /** For what is no lifecycle fact; adapters get it handed in. */
  readonly log: Logger;

  jobAdmitted(fact: JobAdmitted): void;
  jobRejected(fact: JobRejected): void;
  jobDispatched(fact: JobDispatched): void;
  jobSettled(fact: JobSettled): void;
  jobRetried(fact: JobRetried): void;
  jobHandedBack(fact: JobHandedBack): void;
  webhookTried(fact: WebhookTried): void;
  /** Told once for each request that is not to Berth's own routes. */
  requestEnded(fact: RequestEnd): void;

  /** Something noticed while reading a request's priority; counted, logged at debug. */
  priorityNoticed(fact: { notice: PriorityNotice }): void;
  /** A member or tier header from a key that may not assert it was ignored. */
  assertionIgnored(fact: { header: 'member' | 'tier' }): void;

  /** The model server loaded another model for a job; `swappedMs` is that load. */
  modelSwapped(fact: { model: string; swappedMs: number }): void;
  /** A request reached the model server without Berth; told once each. */
  aroundSeen(fact: { model: string; method: string; path: string }): void;
  /** From the end of a run to the next dispatch, said only when a job was waiting meanwhile. */
  gpuIdled(fact: { idleMs: number }): void;
  /** Without this term another job would have gone first; `delayedMs` is what that job lost. */
  orderChanged(fact: { term: Term; band: string; delayedMs: number }): void;
  /** Absolute difference between the ETA a job was given at admission and what came. */
  etaMissed(fact: { errorMs: number }): void;

  /** A piece of output moved the lease's end, or would have had the cap not been reached. */
  leaseRenewed(fact: { result: 'granted' | 'at_cap'; trust: WorkerTrust }): void;
  /** A lease lapsed and its attempt was aborted. */
  staleAborted(fact: { jobId: string; trust: WorkerTrust }): void;
  /** A job asking for more output than the worker's speed can give in time has ended. */
  overCapacityEnded(fact: { jobId: string; outcome: Outcome }): void;

  /** A scorer pass ended. */
  scorerPassed(fact: { passMs: number; waiting: number; rewritten: number }): void;
  /** What waits, by band name; bands that are left out count as empty. */
  backlogSeen(fact: Readonly<Record<string, BandBacklog>>): void;
  /** Age of the last scorer pass, told by each ingress before a scrape: it must grow when the scorer is dead. */
  scorerAged(fact: { ageMs: number }): void;
  /** The ledger's keys were lost or unreadable and were rebuilt from the jobs. */
  ledgerRebuilt(fact: { waiting: number }): void;
  /** A running film had no shot that waits or runs, and got it back. */
  filmRepaired(fact: { filmId: string }): void;

  /** Told at connection and whenever it changes. */
  redisDurabilitySeen(fact: RedisDurability): void;
  /** Whether this process runs another policy configuration than the worker's. */
  policyCompared(fact: { differs: boolean; ours: string; workers: string | null }): void;
  /** Ids the model server lists; the `model` label knows the first 100 ever told, in order. */
  modelsListed(fact: { modelIds: readonly string[] }): void;
}
