import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from './answer.ts';

interface ErrorKind {
  readonly type: string;
  readonly code: string;
}

const kinds: ReadonlyMap<number, ErrorKind> = new Map([
  [400, { type: 'invalid_request_error', code: 'bad_request' }],
  [401, { type: 'authentication_error', code: 'unauthorized' }],
  [404, { type: 'invalid_request_error', code: 'not_found' }],
  [409, { type: 'invalid_request_error', code: 'conflict' }],
  [429, { type: 'rate_limit_error', code: 'concurrency_limit' }],
  [502, { type: 'server_error', code: 'bad_gateway' }],
  [503, { type: 'server_error', code: 'service_unavailable' }],
]);
const internalError: ErrorKind = { type: 'server_error', code: 'internal_error' };

/** The JSON body of an error that llama-swap itself makes, in the shape it has had since v251. */
export function errorEnvelope(status: number, message: string): string {
  const { type, code } = kinds.get(status) ?? internalError;
  return JSON.stringify({ src: 'llama-swap', error: { message, type, param: null, code } });
}

/** Answers with an error of llama-swap's own, in the form the client's Accept header asks for. */
export async function sendError(
  answer: Answer,
  requestHeaders: IncomingHttpHeaders,
  status: number,
  message: string,
  headers: Record<string, string> = {},
): Promise<void> {
  const accept = requestHeaders.accept ?? '';
  if (accept.includes('text/plain')) {
    const type = 'text/plain; charset=utf-8';
    await answer.send(status, { ...headers, 'Content-Type': type }, `llama-swap: ${message}`);
  } else if (accept.includes('text/html')) {
    const type = 'text/html; charset=utf-8';
    const text = message.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
    const page = `<html><body><h1>llama-swap</h1><p>${text}</p></body></html>`;
    await answer.send(status, { ...headers, 'Content-Type': type }, page);
  } else {
    const type = 'application/json';
    await answer.send(status, { ...headers, 'Content-Type': type }, errorEnvelope(status, message));
  }
}

/** Refuses a request over the model's limit: always JSON, whatever the client accepts. */
export async function sendTooMany(answer: Answer): Promise<void> {
  const headers = { 'Content-Type': 'application/json', 'Retry-After': '1' };
  await answer.send(429, headers, errorEnvelope(429, 'Too many requests'));
}

/** Answers with an error of the model's own server: an object without `src`. */
export async function sendModelError(
  answer: Answer,
  status: number,
  message: string,
): Promise<void> {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  const body = JSON.stringify({ error: { code: status, message, type } });
  await answer.send(status, { 'Content-Type': 'application/json; charset=utf-8' }, body);
}

/** Answers like Go's own router: plain text with a line end. */
export async function sendPlain(
  answer: Answer,
  status: number,
  text: string,
  headers: Record<string, string> = {},
): Promise<void> {
  const plain = {
    'Content-Type': 'text/plain; charset=utf-8',
    'X-Content-Type-Options': 'nosniff',
  };
  await answer.send(status, { ...plain, ...headers }, `${text}\n`);
}
