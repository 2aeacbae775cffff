import type { JobState } from '../policy/outcome.ts';
import type { JobFacts, Submitted } from '../ports/job-queue.ts';
import type { JobRecord } from '../ports/job-records.ts';
import type { EtaSeconds } from './queue-view.ts';

/** A job as its client sees it. Times are unix seconds. */
export interface JobObject {
  readonly id: string;
  readonly object: 'job';
  readonly state: JobState;
  readonly model: string;
  readonly route: string;
  readonly member: string;
  readonly tier: string;
  readonly band: string;
  readonly base_priority: number;
  readonly created_at: number;
  /** The last dispatch. */
  readonly started_at: number | null;
  readonly completed_at: number | null;
  /** When record and answer are forgotten. */
  readonly expires_at: number | null;
  /** 1: next; null: it does not wait, or the plan does not name it yet. May rise when better jobs arrive. */
  readonly position: number | null;
  /** Until its answer is complete. */
  readonly eta_seconds: EtaSeconds | null;
  readonly attempts: number;
  readonly lease: Readonly<Record<string, unknown>> | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** Relative to the gateway's origin. */
  readonly urls: Readonly<Record<'self' | 'result' | 'events' | 'explain' | 'stream', string>>;
  /** Each is null until it is known. */
  readonly metrics: {
    readonly queue_seconds: number | null;
    readonly swap_seconds: number | null;
    readonly gpu_seconds: number | null;
  };
}

/** Where the plan has a job. */
export interface PlannedPlace {
  readonly position: number | undefined;
  readonly eta: EtaSeconds;
}

/** Path of a job. */
export const jobPath = (jobId: string): string => `/berth/jobs/${jobId}`;

/** What is on record of a job that was just stored. */
export function newRecord(facts: JobFacts, { jobId, arrival, nowMs }: Submitted): JobRecord {
  return {
    id: jobId,
    facts,
    state: 'waiting',
    arrival,
    createdMs: nowMs,
    startedMs: null,
    endedMs: null,
    expiresMs: null,
    attempts: 0,
    runs: 0,
    error: null,
    gpuMs: null,
    swapMs: null,
    absences: [],
    lease: null,
    answer: null,
  };
}

/** The job object of a record; `place` as the plan last had it, undefined while it does not name the job. */
export function jobObject(record: JobRecord, place: PlannedPlace | undefined): JobObject {
  const { id, facts, state, createdMs, startedMs, endedMs } = record;
  const self = jobPath(id);
  const isWaiting = state === 'waiting';
  // A plan of before the dispatch still names a place.
  const isCurrent = place !== undefined && isWaiting === (place.position !== undefined);
  const isOpen = isWaiting || state === 'running';
  const queuedUntilMs = startedMs ?? endedMs;
  return {
    id,
    object: 'job',
    state,
    model: facts.model,
    route: facts.route,
    member: facts.member,
    tier: facts.tier,
    band: facts.band,
    base_priority: facts.base,
    created_at: createdMs / 1000,
    started_at: secondsOf(startedMs),
    completed_at: secondsOf(endedMs),
    expires_at: secondsOf(record.expiresMs),
    position: isWaiting && isCurrent ? (place.position ?? null) : null,
    eta_seconds: isOpen && isCurrent ? place.eta : null,
    attempts: record.attempts,
    lease: record.lease,
    error: record.error,
    urls: {
      self,
      result: `${self}/result`,
      events: `${self}/events`,
      explain: `${self}/explain`,
      stream: `${self}/stream`,
    },
    metrics: {
      queue_seconds: queuedUntilMs === null ? null : (queuedUntilMs - createdMs) / 1000,
      swap_seconds: secondsOf(record.swapMs),
      gpu_seconds: secondsOf(record.gpuMs),
    },
  };
}

const secondsOf = (ms: number | null): number | null => (ms === null ? null : ms / 1000);
