import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { headerOf } from '../../gateway/headers.ts';
import { JobStory } from '../../gateway/job-story.ts';
import { watchJob } from '../../gateway/watch-job.ts';
import type { JobRoutesDependencies } from '../job-reading.ts';
import { visibleJob } from '../job-scope.ts';

/** How often position and progress are looked at, in ms. */
const LOOK_MS = 1000;

/**
 * `GET /berth/jobs/{id}/events`: the job's states, positions and progress as server-sent events until it has ended. A
 * client that comes back with `Last-Event-ID` gets what it has not seen; one that has seen the end gets 204, at which
 * an EventSource gives up asking.
 */
export function jobEventsRoute(dependencies: JobRoutesDependencies): RequestHandler {
  const { records, positions, stopping, everyMs } = dependencies;
  return async (request, response) => {
    const id = String(request.params.id);
    let record = await visibleJob(request, id, records);
    const lastId = headerOf(request.rawHeaders, 'last-event-id')?.trim() ?? '';
    const story = JobStory.after(lastId);
    if (story === undefined)
      throw new GatewayError('bad_request', 'the header Last-Event-ID is none of this stream', {
        param: 'Last-Event-ID',
      });
    if (story.isOver(record)) {
      response.writeHead(204).end();
      return;
    }
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, stopping]);
    response.writeHead(200, [
      ...['Content-Type', 'text/event-stream', 'Cache-Control', 'no-store'],
      ...['X-Accel-Buffering', 'no'],
    ]);
    response.flushHeaders();
    let spokeAt = performance.now();
    while (!signal.aborted) {
      const news = story.tell(record, await positions.of(id));
      for (const { id: eventId, name, data } of news)
        response.write(`id: ${eventId}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
      if (news.length > 0) spokeAt = performance.now();
      else if (performance.now() - spokeAt >= everyMs) {
        response.write(': berth\n\n');
        spokeAt = performance.now();
      }
      if (story.isOver(record)) break;
      const look = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS)]);
      const { state, runs } = record;
      const isOther = (one: typeof record): boolean => one.state !== state || one.runs !== runs;
      const seen = await watchJob(id, isOther, dependencies, look).catch(() => record);
      if (seen === undefined) break;
      record = seen;
    }
    response.end();
  };
}
