import type { EndedJob } from '../../ports/ended-job.ts';
import type { JobFacts } from '../../ports/job-queue.ts';
import type { Outcome } from '../../policy/outcome.ts';

/** An entry as outbox.lua writes it. */
interface StoredEnd {
  event: string;
  id: string;
  hook: string;
  outcome: Outcome;
  code: string;
  message: string;
  data: string;
  createdMs: string;
  startedMs: string;
  attempts: string;
  endedMs: string;
  gpuMs: number;
}

/** The id of an entry's event; undefined for one that cannot be read and would block all after it. */
export function eventIdOf(entry: string): string | undefined {
  try {
    return (JSON.parse(entry) as StoredEnd).event;
  } catch {
    return undefined;
  }
}

/** What an entry of the outbox tells. */
export function readEndedJob(entry: string): EndedJob {
  const stored = JSON.parse(entry) as StoredEnd;
  const endedMs = Number(stored.endedMs);
  return {
    eventId: stored.event,
    jobId: stored.id,
    sealedAddress: Buffer.from(stored.hook, 'base64'),
    outcome: stored.outcome,
    code: stored.code,
    message: stored.message,
    facts: JSON.parse(stored.data) as JobFacts,
    createdMs: Number(stored.createdMs || endedMs),
    startedMs: stored.startedMs === '' ? null : Number(stored.startedMs),
    endedMs,
    attempts: Number(stored.attempts),
    gpuMs: stored.gpuMs,
  };
}
