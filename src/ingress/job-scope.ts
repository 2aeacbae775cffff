import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { JobRecord, JobRecords } from '../ports/job-records.ts';
import { identityOf } from './identity.ts';

const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/**
 * Whose jobs a request may see: one member's, or, null, everybody's. An administrator who speaks for a member sees what
 * that member sees.
 */
export function scopeOf(request: IncomingMessage): string | null {
  const { isAdmin, mayAssert, member } = identityOf(request);
  const asserts = mayAssert.includes('member') && Boolean(request.headers['x-berth-member']);
  return isAdmin && !asserts ? null : member;
}

/** The same for every id that is not to be seen, whether there is such a job or not. */
export const noSuchJob = (): GatewayError =>
  new GatewayError('job_not_found', 'there is no such job');

/** The job, if the request may see it. Throws GatewayError `job_not_found` for any other. */
export async function visibleJob(
  request: IncomingMessage,
  jobId: string,
  records: Pick<JobRecords, 'read'>,
): Promise<JobRecord> {
  const record = ID.test(jobId) ? await records.read(jobId) : undefined;
  const scope = scopeOf(request);
  if (record === undefined || (scope !== null && record.facts.member !== scope)) throw noSuchJob();
  return record;
}
