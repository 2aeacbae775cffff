import type { IncomingMessage, ServerResponse } from 'node:http';

/** llama-swap's answer to whoever asks for no particular headers. */
const USUAL_HEADERS = 'Content-Type, Authorization, Accept, X-Requested-With';
/** What a field name may be made of (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Berth's own routes are for its own pages and for clients that are no browsers. */
const OWN = /^\/berth(?:[/?]|$)/i;

/**
 * Answers OPTIONS of any path as llama-swap does: 204, without a key and without looking for the path. Pages of any
 * origin may use the model routes; Berth's own routes, the board above all, are granted to none.
 */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  const grant = [
    ...['Access-Control-Allow-Origin', '*'],
    ...['Access-Control-Allow-Methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS'],
    ...['Access-Control-Allow-Headers', allowedHeaders(request)],
    ...['Access-Control-Max-Age', '86400'],
  ];
  response.writeHead(204, OWN.test(request.url ?? '/') ? [] : grant);
  response.end();
}

/**
 * What lets a page read an error that Berth itself answers; flat. The model server's answers carry what the model
 * server put there, so the header never comes twice.
 */
export function errorCors(request: IncomingMessage & { originalUrl?: string }): string[] {
  const isOwn = OWN.test(request.originalUrl ?? request.url ?? '/');
  return request.headers.origin === undefined || isOwn ? [] : ['Access-Control-Allow-Origin', '*'];
}

/** The names that were asked for, those that are names. */
function allowedHeaders(request: IncomingMessage): string {
  const asked = request.headers['access-control-request-headers'];
  const names = (asked?.split(',') ?? [])
    .map((name) => name.trim())
    .filter((name) => TOKEN.test(name));
  return names.length === 0 ? USUAL_HEADERS : names.join(', ');
}
