import * as z from 'zod';
import type { ErrorCode } from '../../errors.ts';
import { errorCodes, errorTypes } from '../error-table.ts';

/** When each code is answered. */
export const errorMeanings: Readonly<Record<ErrorCode, string>> = {
  bad_request: 'The request cannot be read; `param` names the field, header or parameter.',
  unauthorized: 'No key, or one that is not known.',
  forbidden: 'This key may not do this; or, without keys, the request is not of this machine.',
  job_not_found: 'There is no such job, film or path for this member.',
  result_gone: 'The answer is not kept any more.',
  body_too_large: 'The body, or what it expands to, is above the limit.',
  unsupported_encoding: 'The body is in a coding that is not gzip, deflate or br.',
  idempotency_mismatch: 'The Idempotency-Key came with another request before.',
  member_queue_full: 'The member has as many jobs or bytes waiting as it may.',
  queue_full: 'As many jobs wait as may wait in all.',
  memory_full: 'Redis has little memory left.',
  storage_full: 'The disk has little room left, or large bodies cannot be stored.',
  redis_unavailable: 'The queue is not reachable right now, or has no plan yet.',
  shutting_down: 'The gateway is shutting down.',
  model_unavailable: 'The model server cannot serve the model right now.',
  model_server_unreachable: 'The model server could not be reached in any attempt.',
  model_server_truncated: 'The model server broke off in its answer.',
  model_server_invalid:
    'The answer of the model server was none, or a shot was answered with an error.',
  model_server_timeout: 'The model server did not answer in time.',
  lease_lapsed: 'The job made no progress for too long.',
  start_deadline_passed: 'The job had not started by its deadline.',
  cancelled: 'The job was cancelled; told to a client that waits for its answer.',
  client_closed: 'The client has gone; in logs, metrics and on jobs alone.',
  storage_lost: 'The stored request was lost; on jobs alone, answered as internal_error.',
  internal_error: 'A fault of the gateway.',
};

/** Every code of an error. */
export const errorCodeSchema = z
  .enum(errorCodes)
  .describe('Closed: other codes come from the model server, and then without `src: berth`.');

/** Berth's own errors. */
export const errorSchema = z
  .object({
    src: z
      .literal('berth')
      .describe('Whose fault it is: errors of the model server have none of this.'),
    error: z.object({
      message: z.string(),
      type: z.enum(errorTypes),
      param: z.string().nullable().describe('The field, header or parameter at fault.'),
      code: errorCodeSchema,
    }),
  })
  .describe(
    'An error of Berth. A client that asks for text/plain or text/html alone gets it in that form.',
  );

/** Berth's own errors. */
export type ErrorBody = z.infer<typeof errorSchema>;
