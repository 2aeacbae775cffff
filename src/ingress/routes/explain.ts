import type { RequestHandler } from 'express';
import { explain } from '../../gateway/explanation.ts';
import type { ExplainingDependencies } from '../../gateway/explanation.ts';
import type { JobRecords } from '../../ports/job-records.ts';
import { scopeOf, visibleJob } from '../job-scope.ts';
import { sendJson } from '../send-json.ts';

/** What the route needs. */
export interface ExplainRouteDependencies {
  records: Pick<JobRecords, 'read'>;
  explaining: ExplainingDependencies;
}

/** `GET /berth/jobs/{id}/explain`: why it waits, or waited. Others' jobs are not named. */
export function explainRoute(dependencies: ExplainRouteDependencies): RequestHandler {
  const { records, explaining } = dependencies;
  return async (request, response) => {
    const record = await visibleJob(request, String(request.params.id), records);
    sendJson(request, response, 200, await explain(record, scopeOf(request), explaining));
  };
}
