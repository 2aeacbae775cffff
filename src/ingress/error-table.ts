import type { ErrorCode } from '../errors.ts';

/** OpenAI's types of errors, as far as Berth uses them. */
export const errorTypes = [
  'invalid_request_error',
  'authentication_error',
  'permission_error',
  'rate_limit_error',
  'server_error',
] as const;

/** What a code looks like on the wire. */
export interface ErrorRow {
  readonly status: number;
  readonly type: (typeof errorTypes)[number];
  /** Seconds of `Retry-After` when the error itself names none; absent: the code has none. */
  readonly retryAfter?: number;
}

const invalid = (status: number): ErrorRow => ({ status, type: 'invalid_request_error' });
const server = (status: number, retryAfter?: number): ErrorRow =>
  retryAfter === undefined
    ? { status, type: 'server_error' }
    : { status, type: 'server_error', retryAfter };

/** The closed list (design.md section 8). */
export const errorTable: Readonly<Record<ErrorCode, ErrorRow>> = {
  bad_request: invalid(400),
  unauthorized: { status: 401, type: 'authentication_error' },
  forbidden: { status: 403, type: 'permission_error' },
  job_not_found: invalid(404),
  result_gone: invalid(410),
  body_too_large: invalid(413),
  unsupported_encoding: invalid(415),
  idempotency_mismatch: invalid(422),
  member_queue_full: { status: 429, type: 'rate_limit_error', retryAfter: 30 },
  queue_full: server(503, 30),
  memory_full: server(503, 30),
  storage_full: server(503, 30),
  redis_unavailable: server(503, 2),
  shutting_down: server(503, 5),
  model_unavailable: server(503, 5),
  model_server_unreachable: server(502),
  model_server_truncated: server(502),
  model_server_invalid: server(502),
  model_server_timeout: server(504),
  lease_lapsed: server(504),
  start_deadline_passed: server(504),
  cancelled: invalid(409),
  client_closed: invalid(499),
  storage_lost: server(500),
  internal_error: server(500),
};

/** All codes. */
export const errorCodes = Object.keys(errorTable) as [ErrorCode, ...ErrorCode[]];

/** Status a code is answered with. */
export const statusOf = (code: ErrorCode): number => errorTable[code].status;

/** The code a client is shown: what Berth lost is Berth's own fault. */
export const shownCode = (code: ErrorCode): ErrorCode =>
  code === 'storage_lost' ? 'internal_error' : code;
