import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestEnd, Telemetry } from '../ports/telemetry.ts';
import { statusOf } from './error-table.ts';
import type { HttpResponseSink } from './response-sink.ts';

/** What is known of a request beside its response; filled in as it becomes known. */
export interface RequestProgress {
  /** Set once it became a job. */
  jobId?: string;
  sink?: HttpResponseSink;
  hasStarted?: () => boolean;
}

/**
 * Tells telemetry once how a request ended for its client: the status it got, that of the error by which a begun
 * answer was broken off, or 499 when the client left before its answer was complete.
 */
export function recordEnd(
  request: IncomingMessage,
  response: ServerResponse,
  progress: RequestProgress,
  telemetry: Pick<Telemetry, 'requestEnded'>,
): void {
  const startedAt = performance.now();
  response.once('close', () => {
    const failure = progress.sink?.failure;
    const isGone = failure === undefined && !response.writableFinished;
    const end: RequestEnd = {
      method: request.method ?? '',
      path: (request.url ?? '').split('?', 1)[0] ?? '',
      status: isGone ? 499 : failure === undefined ? response.statusCode : statusOf(failure),
      phase: phaseOf(response, progress),
      ms: Math.round(performance.now() - startedAt),
      ...(progress.jobId === undefined ? {} : { jobId: progress.jobId }),
      ...(isGone ? { code: 'client_closed' } : failure === undefined ? {} : { code: failure }),
    };
    telemetry.requestEnded(end);
  });
}

function phaseOf(
  response: ServerResponse,
  { jobId, sink, hasStarted }: RequestProgress,
): RequestEnd['phase'] {
  if (sink === undefined ? response.headersSent : sink.hasAnswer) return 'answering';
  if (hasStarted?.() === true) return 'running';
  return jobId === undefined ? 'arriving' : 'waiting';
}
