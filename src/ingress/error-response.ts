import type { ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { errorInForm } from './error-text.ts';
import type { StreamError } from './stream-frames.ts';
import { errorCors } from './cors.ts';

interface ErrorRow {
  status: number;
  /** OpenAI's error type. */
  type: string;
  /** Seconds of `Retry-After` when the error itself names none. */
  retryAfter?: number;
}

const invalid = (status: number): ErrorRow => ({ status, type: 'invalid_request_error' });
const server = (status: number, retryAfter?: number): ErrorRow =>
  retryAfter === undefined
    ? { status, type: 'server_error' }
    : { status, type: 'server_error', retryAfter };

/** What each code looks like on the wire (design.md section 8). */
const ROWS = {
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
} as const satisfies Record<ErrorCode, ErrorRow>;

/** Status a code is answered with. */
export const statusOf = (code: ErrorCode): number => ROWS[code].status;

/** An error of ours as a stream says it. */
export function streamErrorOf(code: ErrorCode, message: string, param?: string): StreamError {
  const { status, type } = ROWS[code];
  const shown: ErrorCode = code === 'storage_lost' ? 'internal_error' : code;
  return { status, message, type, param: param ?? null, code: shown, src: 'berth' };
}

/** The body of an error in the shape every client of llama-swap reads; `src` says whose fault it is. */
function errorBody({ code, message, param }: GatewayError): string {
  const shown = streamErrorOf(code, message, param);
  const error = { message, type: shown.type, param: shown.param, code: shown.code };
  return JSON.stringify({ src: shown.src, error });
}

/** Headers and status of an error, its body in the form the client asked for; `extra` is a flat list put before. */
export function sendError(
  response: ServerResponse,
  error: GatewayError,
  extra: readonly string[] = [],
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const row: ErrorRow = ROWS[error.code];
  const { accept } = response.req.headers;
  const { contentType, body } = errorInForm(accept, row.status, error.message, errorBody(error));
  const asked = error.retryAfterSeconds ?? row.retryAfter;
  const retry =
    row.retryAfter === undefined || asked === undefined
      ? []
      : ['Retry-After', String(Math.min(3600, Math.max(1, Math.ceil(asked))))];
  const challenge = row.status === 401 ? ['WWW-Authenticate', 'Basic realm="berth"'] : [];
  response.writeHead(row.status, [
    ...extra,
    'Content-Type',
    contentType,
    'Content-Length',
    String(body.length),
    ...retry,
    ...challenge,
    ...errorCors(response.req),
  ]);
  response.end(body);
}

/** Whatever was thrown, as an error we may show: unknown ones say nothing of their inside. */
export function asGatewayError(error: unknown): GatewayError {
  return error instanceof GatewayError
    ? error
    : new GatewayError('internal_error', 'the gateway failed to handle this request', {
        cause: error,
      });
}
