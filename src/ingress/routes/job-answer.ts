import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { ErrorCode } from '../../errors.ts';
import { headerOf } from '../../gateway/headers.ts';
import { ResponseRelay } from '../../gateway/relay-response.ts';
import type { ResponseSink } from '../../gateway/relay-response.ts';
import { hasEnded } from '../../gateway/watch-job.ts';
import type { JobRecord } from '../../ports/job-records.ts';
import type { ResponseHead } from '../../ports/response-log.ts';
import { jobStreamQuery } from '../api/job-queries.ts';
import { readQuery } from '../api/read-query.ts';
import { streamPlaceHeader } from '../api/request-headers.ts';
import { byteRange } from '../byte-range.ts';
import { sendError } from '../error-response.ts';
import type { JobRoutesDependencies } from '../job-reading.ts';
import { jobHeaders } from '../job-sink.ts';
import { visibleJob } from '../job-scope.ts';
import { partSink } from '../part-sink.ts';
import type { Part } from '../part-sink.ts';
import { HttpResponseSink } from '../response-sink.ts';

/** `GET /berth/jobs/{id}/result` and `/stream`: the answer of the model server, whole or as far as it has come. */
export function jobAnswerRoutes(dependencies: JobRoutesDependencies): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/:id/result', resultRoute(dependencies));
  router.get('/:id/stream', streamRoute(dependencies));
  return router;
}

/**
 * The answer of a job that has ended, as a connected client would have got it:
 *
 * 1. Before the end there is none: 404, with a hint when to ask again.
 * 2. One that is not kept any more: 410, or the error the job ended with.
 * 3. A range of a completed one: 206, or 416 when there is no such part.
 * 4. Status, headers and bytes of the model server.
 */
function resultRoute(dependencies: JobRoutesDependencies): RequestHandler {
  return async (request, response) => {
    const record = await visibleJob(request, String(request.params.id), dependencies.records);
    // 1
    if (!hasEnded(record)) {
      const message = `the job has no result yet: it is ${record.state}`;
      sendError(response, new GatewayError('job_not_found', message), ['Retry-After', '2']);
      return;
    }
    // 2
    requireAnswer(record);
    // 3
    const asked = request.headers['if-range'] === undefined ? request.headers.range : undefined;
    const isWhole = record.answer?.isWhole === true;
    const totalBytes = record.answer?.bytes ?? 0;
    const range = isWhole ? byteRange(asked, totalBytes) : undefined;
    if (range !== undefined && (await headOf(record, dependencies)).status === 200) {
      if (range === 'unsatisfiable') {
        const headers = ['Content-Range', `bytes */${totalBytes}`, 'Content-Length', '0'];
        response.writeHead(416, [...jobHeaders(record), ...headers]).end();
        return;
      }
      await relayPart(request, response, record, dependencies, { ...range, totalBytes });
      return;
    }
    // 4
    await relayPart(request, response, record, dependencies);
  };
}

/** The answer so far, then live; from byte `?offset=`, or from where `Last-Event-ID` (`offset` or `run-offset`) says. */
function streamRoute(dependencies: JobRoutesDependencies): RequestHandler {
  return async (request, response) => {
    const record = await visibleJob(request, String(request.params.id), dependencies.records);
    const from = readQuery(request, jobStreamQuery).offset ?? lastByte(request, record);
    if (hasEnded(record)) requireAnswer(record);
    if (record.answer?.isWhole === true && from > record.answer.bytes) {
      const message = `the answer has ${record.answer.bytes} bytes`;
      throw new GatewayError('bad_request', message, { param: 'offset' });
    }
    await relayPart(request, response, record, dependencies, from === 0 ? undefined : { from });
  };
}

async function relayPart(
  request: Request,
  response: Response,
  record: JobRecord,
  dependencies: JobRoutesDependencies,
  part?: Part,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const enough = new AbortController();
  const signal = AbortSignal.any([gone.signal, enough.signal, dependencies.stopping]);
  const mayRange = hasEnded(record) && record.answer?.isWhole === true;
  const sink = new HttpResponseSink(response, () => [
    ...jobHeaders(record),
    ...(mayRange && request.path.endsWith('/result') ? ['Accept-Ranges', 'bytes'] : []),
  ]);
  const target: ResponseSink =
    part === undefined ? sink : partSink(sink, part, () => enough.abort());
  const relay = new ResponseRelay(record.id, dependencies, { fromByte: part?.from ?? 0 });
  try {
    await relay.relay(target, signal, true);
  } catch (error) {
    if (!signal.aborted) throw error;
    // The gateway stops: nothing may look complete.
    if (!gone.signal.aborted && !enough.signal.aborted)
      sink.fail('shutting_down', 'the gateway is shutting down');
  }
}

/** Throws what a client of a job without a kept answer is told. */
function requireAnswer({ answer, error }: JobRecord): void {
  if (answer !== null) return;
  if (error === null) throw new GatewayError('result_gone', 'the answer is not kept any more');
  throw new GatewayError(error.code as ErrorCode, error.message);
}

/** The head of a kept answer: that of its last run. */
async function headOf({ id }: JobRecord, { reader }: JobRoutesDependencies): Promise<ResponseHead> {
  const { entries } = await reader.next(id, undefined, AbortSignal.timeout(5000));
  const last = entries.findLast((entry) => entry.kind === 'head');
  if (last === undefined) throw new GatewayError('result_gone', 'the answer is not kept any more');
  return last.head;
}

/** Body bytes that a client says it has. */
function lastByte(request: Request, { answer }: JobRecord): number {
  const text = headerOf(request.rawHeaders, 'last-event-id')?.trim() ?? '';
  if (text === '') return 0;
  const { data: place } = streamPlaceHeader.safeParse(text);
  // Nothing of an earlier run was shown to anybody.
  const isOther = place?.run !== undefined && answer !== null && place.run !== answer.run;
  if (place === undefined || isOther)
    throw new GatewayError(
      'bad_request',
      'the header Last-Event-ID names no place in this answer',
      { param: 'Last-Event-ID' },
    );
  return place.offset;
}
