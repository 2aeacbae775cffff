import type { Outcome } from '../policy/outcome.ts';
import type { FilmShot } from '../ports/job-queue.ts';
import type { EndedJob } from '../ports/ended-job.ts';
import { jobPath } from './job-object.ts';

/** The end of a job as it is posted. Times are whole unix seconds. */
export interface JobEvent {
  readonly type: `job.${Outcome}`;
  /** ISO 8601. */
  readonly timestamp: string;
  readonly data: {
    readonly id: string;
    readonly object: 'job';
    readonly state: Outcome;
    readonly model: string;
    readonly route: string;
    readonly member: string;
    readonly tier: string;
    readonly band: string;
    readonly base_priority: number;
    /** Of a shot: its film, and its place there from 1. */
    readonly film: FilmShot | null;
    readonly created_at: number;
    readonly started_at: number | null;
    readonly completed_at: number;
    readonly attempts: number;
    readonly error: { readonly code: string; readonly message: string } | null;
    readonly urls: { readonly self: string; readonly result: string };
    readonly metrics: { readonly queue_seconds: number; readonly gpu_seconds: number };
  };
}

/**
 * The event of a job's end as it is posted, the same text at every attempt: `type`, `timestamp` and, as `data`, what
 * anybody may know of the job who may see it at all. Nothing of its request or its answer is in it.
 */
export function jobEvent(job: EndedJob): string {
  const { facts, outcome, createdMs, startedMs, endedMs } = job;
  const self = jobPath(job.jobId);
  const event: JobEvent = {
    type: `job.${outcome}`,
    timestamp: new Date(endedMs).toISOString(),
    data: {
      id: job.jobId,
      object: 'job',
      state: outcome,
      model: facts.model,
      route: facts.route,
      member: facts.member,
      tier: facts.tier,
      band: facts.band,
      base_priority: facts.base,
      film: facts.film ?? null,
      created_at: unixSeconds(createdMs),
      started_at: startedMs === null ? null : unixSeconds(startedMs),
      completed_at: unixSeconds(endedMs),
      attempts: job.attempts,
      error: outcome === 'completed' ? null : { code: job.code, message: job.message },
      urls: { self, result: `${self}/result` },
      metrics: {
        queue_seconds: Math.max(0, (startedMs ?? endedMs) - createdMs) / 1000,
        gpu_seconds: job.gpuMs / 1000,
      },
    },
  };
  return JSON.stringify(event);
}

const unixSeconds = (ms: number): number => Math.floor(ms / 1000);
