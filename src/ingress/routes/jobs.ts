import { Router } from 'express';
import type { Request, RequestHandler, Response } from 'express';
import { jobObject } from '../../gateway/job-object.ts';
import { hasEnded, watchJob } from '../../gateway/watch-job.ts';
import type { JobRecord } from '../../ports/job-records.ts';
import { jobListQuery, jobQuery } from '../api/job-queries.ts';
import type { JobList } from '../api/job-schemas.ts';
import { readQuery } from '../api/read-query.ts';
import { entityTag, tagsIn } from '../entity-tag.ts';
import type { JobRoutesDependencies } from '../job-reading.ts';
import { noSuchJob, scopeOf, visibleJob } from '../job-scope.ts';
import { sendJson } from '../send-json.ts';
import { jobAnswerRoutes } from './job-answer.ts';
import { explainRoute } from './explain.ts';
import { jobEventsRoute } from './job-events.ts';

/** How long a cancel waits for the running job's end, in ms. */
const CANCEL_MS = 5000;

/** Everything below `/berth/jobs`: jobs as their clients follow, read and cancel them. */
export function jobRoutes(dependencies: JobRoutesDependencies): Router {
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/', listRoute(dependencies));
  router.get('/:id', readRoute(dependencies));
  router.delete('/:id', cancelRoute(dependencies));
  router.use(jobAnswerRoutes(dependencies));
  router.get('/:id/events', jobEventsRoute(dependencies));
  router.get('/:id/explain', explainRoute(dependencies));
  return router;
}

const idOf = (request: Request): string => String(request.params.id);

/** `GET /berth/jobs`: the member's jobs, newest first, a page at a time. */
function listRoute({ records, positions, bands }: JobRoutesDependencies): RequestHandler {
  const schema = jobListQuery(bands);
  return async (request, response) => {
    const query = readQuery(request, schema);
    const page = await records.list({
      member: scopeOf(request) ?? query.member ?? null,
      states: query.state ?? null,
      model: query.model ?? null,
      band: query.band ?? null,
      before: query.cursor ?? null,
      limit: query.limit,
    });
    const data = page.jobs.map(async (record) => jobObject(record, await positions.of(record.id)));
    const next = page.next === null ? null : String(page.next);
    const list: JobList = {
      object: 'list',
      data: await Promise.all(data),
      has_more: next !== null,
      next_cursor: next,
    };
    sendJson(request, response, 200, list);
  };
}

/**
 * `GET /berth/jobs/{id}`:
 *
 * 1. With `?wait=n` it answers at the next change of state, after n seconds at the latest. A client that shows by
 *    `If-None-Match` that it knows another state is answered at once; so is one that asks for a job that has ended.
 * 2. With an `If-None-Match` that still holds, 304.
 */
function readRoute(dependencies: JobRoutesDependencies): RequestHandler {
  const { records, positions, stopping } = dependencies;
  return async (request, response) => {
    const known = tagsIn(request.headers['if-none-match']);
    const { wait: waitSeconds } = readQuery(request, jobQuery);
    let record = await visibleJob(request, idOf(request), records);
    // 1
    const isOld =
      known.length > 0 && !known.some((tag) => tag.startsWith(`"${versionOf(record)}-`));
    if (waitSeconds > 0 && !isOld && !hasEnded(record)) {
      const { signal, over } = patience(response, waitSeconds * 1000, stopping);
      const before = versionOf(record);
      const isOther = (one: JobRecord): boolean => versionOf(one) !== before;
      const seen = await watchJob(record.id, isOther, dependencies, signal).finally(over);
      if (response.destroyed) return;
      if (seen === undefined) throw noSuchJob();
      record = seen;
    }
    // 2
    const job = jobObject(record, await positions.of(record.id));
    const tag = entityTag(versionOf(record), JSON.stringify(job));
    if (known.includes(tag) || known.includes('*')) {
      response.writeHead(304, ['ETag', tag, 'Cache-Control', 'no-cache']).end();
      return;
    }
    sendJson(request, response, 200, job, ['ETag', tag]);
  };
}

/** `DELETE /berth/jobs/{id}`: the job as it is then; one that had ended stays as it was. */
function cancelRoute(dependencies: JobRoutesDependencies): RequestHandler {
  const { records, store, telemetry, stopping } = dependencies;
  return async (request, response) => {
    const before = await visibleJob(request, idOf(request), records);
    const { id, facts } = before;
    const fate = await records.cancel(id);
    const { signal, over } = patience(response, fate === 'cancelling' ? CANCEL_MS : 1, stopping);
    const record = await watchJob(id, hasEnded, dependencies, signal).finally(over);
    if (record === undefined) throw noSuchJob();
    if (fate === 'cancelled') {
      telemetry.jobSettled({
        jobId: id,
        memberId: facts.member,
        ...{ band: facts.band, model: facts.model, kind: facts.kind },
        outcome: 'cancelled',
        code: 'cancelled',
        waitedMs: (record.endedMs ?? record.createdMs) - record.createdMs,
      });
      await store.removeJobs([id]).catch(() => undefined);
    }
    sendJson(request, response, 200, jobObject(record, undefined));
  };
}

/** What changes when a job goes from one state to another; a repeated attempt is another one too. */
const versionOf = ({ state, runs }: JobRecord): string => `${state}.${runs}`;

/** Aborts after `ms`, when the client has gone, or when the gateway stops. Call `over` when the wait is. */
function patience(
  response: Response,
  ms: number,
  stopping: AbortSignal,
): { signal: AbortSignal; over: () => void } {
  const gone = new AbortController();
  const onClose = (): void => gone.abort();
  const timer = setTimeout(onClose, ms);
  response.once('close', onClose);
  return {
    signal: AbortSignal.any([gone.signal, stopping]),
    over: () => {
      clearTimeout(timer);
      response.off('close', onClose);
    },
  };
}
