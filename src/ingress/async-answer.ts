import type { IncomingMessage, ServerResponse } from 'node:http';
import { jobObject, jobPath } from '../gateway/job-object.ts';
import { ResponseRelay } from '../gateway/relay-response.ts';
import { hasEnded, watchJob } from '../gateway/watch-job.ts';
import type { JobRecord } from '../ports/job-records.ts';
import type { JobReading } from './job-reading.ts';
import { jobHeaders } from './job-sink.ts';
import { sendJson } from './send-json.ts';
import { HttpResponseSink } from './response-sink.ts';

/**
 * The answer to a client that comes back for its job's: 202 with the job, or, when the job ends within `waitSeconds`,
 * what the model server answered.
 *
 * @param signal ends the wait early: the gateway stops, or the client has gone
 */
export async function answerAsync(
  request: IncomingMessage,
  response: ServerResponse,
  record: JobRecord,
  waitSeconds: number,
  reading: JobReading,
  signal: AbortSignal,
): Promise<void> {
  const applied = ['Preference-Applied', appliedOf(waitSeconds)];
  let latest: JobRecord | undefined = record;
  if (waitSeconds > 0) {
    const either = AbortSignal.any([signal, AbortSignal.timeout(waitSeconds * 1000)]);
    latest = (await watchJob(record.id, hasEnded, reading, either).catch(() => record)) ?? record;
  }
  if (response.destroyed) return;
  if (waitSeconds > 0 && hasEnded(latest)) {
    const headers = (): string[] => [...jobHeaders(latest), ...applied];
    const sink = new HttpResponseSink(response, headers);
    await new ResponseRelay(record.id, reading).relay(sink, signal, true).catch(() => undefined);
    return;
  }
  const job = jobObject(latest, await reading.positions.of(record.id));
  const headers = [...jobHeaders(latest), 'Location', jobPath(record.id), ...applied];
  sendJson(request, response, 202, job, headers);
}

const appliedOf = (waitSeconds: number): string =>
  waitSeconds > 0 ? `respond-async, wait=${waitSeconds}` : 'respond-async';
