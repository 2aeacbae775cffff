import type { IncomingMessage, ServerResponse } from 'node:http';
import { protocolOf } from '../gateway/stream-protocol.ts';
import type { BasePriority } from '../policy/priority.ts';
import type { JobRecord } from '../ports/job-records.ts';
import type { IntakeBody } from './body-intake.ts';
import type { PublishedPlan } from './published-plan.ts';
import { HttpResponseSink } from './response-sink.ts';
import { WaitingSigns } from './waiting-signs.ts';
import type { WaitingStyle } from './waiting-signs.ts';

/** How clients of jobs are told that they wait. */
export interface WaitingRules {
  style: WaitingStyle;
  positions: PublishedPlan;
}

/** A queued job and what its client is told of it. */
export interface JobSinkFacts {
  id: string;
  model: string;
  ranked: Pick<BasePriority, 'base' | 'band'>;
  body: Pick<IntakeBody, 'isStream'>;
  /** By performance.now(). */
  submittedAt: number;
  /** When the worker began, by performance.now(); undefined: not yet. */
  startedAt: () => number | undefined;
}

/** Berth's own headers on the answer of a job that is read from its record; flat. */
export function jobHeaders({ id, facts }: JobRecord): string[] {
  return ['X-Berth-Job-Id', id, 'X-Berth-Band', facts.band, 'X-Berth-Priority', String(facts.base)];
}

/**
 * The client of a job as a sink: Berth's headers on its answer, and signs of life where it asked for a stream of text.
 * The silence that they end begins now.
 */
export function jobSink(
  request: IncomingMessage,
  response: ServerResponse,
  { id, model, ranked, body, submittedAt, startedAt }: JobSinkFacts,
  { style, positions }: WaitingRules,
): HttpResponseSink {
  const headers = (): string[] => {
    const queuedMs = Math.round((startedAt() ?? performance.now()) - submittedAt);
    return [
      ...['X-Berth-Job-Id', id, 'X-Berth-Band', ranked.band],
      ...['X-Berth-Priority', String(ranked.base), 'Server-Timing', `queue;dur=${queuedMs}`],
    ];
  };
  const protocol = body.isStream ? protocolOf(request.url ?? '') : undefined;
  if (protocol === undefined) return new HttpResponseSink(response, headers);
  const signs = new WaitingSigns({
    jobId: id,
    model,
    protocol,
    style,
    hasStarted: () => startedAt() !== undefined,
    place: async () => positions.of(id),
  });
  return new HttpResponseSink(response, headers, signs);
}
