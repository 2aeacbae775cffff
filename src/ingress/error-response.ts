import type { ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { ErrorBody } from './api/error-schemas.ts';
import { errorCors } from './cors.ts';
import { errorTable, shownCode } from './error-table.ts';
import { errorInForm } from './error-text.ts';
import type { StreamError } from './stream-frames.ts';

/** An error of ours as a stream says it. */
export function streamErrorOf(code: ErrorCode, message: string, param?: string): StreamError {
  const { status, type } = errorTable[code];
  return { status, message, type, param: param ?? null, code: shownCode(code), src: 'berth' };
}

/** The body of an error in the shape every client of llama-swap reads; `src` says whose fault it is. */
function errorBody({ code, message, param }: GatewayError): string {
  const { type } = errorTable[code];
  const body: ErrorBody = {
    src: 'berth',
    error: { message, type, param: param ?? null, code: shownCode(code) },
  };
  return JSON.stringify(body);
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
  const row = errorTable[error.code];
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
