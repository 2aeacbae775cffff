import type { EndedJob } from '../ports/ended-job.ts';

/**
 * The event of a job's end as it is posted, the same text at every attempt: `type`, `timestamp` and, as `data`, what
 * anybody may know of the job who may see it at all. Nothing of its request or its answer is in it.
 */
export function jobEvent(job: EndedJob): string {
  const { facts, outcome, createdMs, startedMs, endedMs } = job;
  const self = `/berth/jobs/${job.jobId}`;
  return JSON.stringify({
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
  });
}

const unixSeconds = (ms: number): number => Math.floor(ms / 1000);
