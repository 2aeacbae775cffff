import type { IncomingMessage, ServerResponse } from 'node:http';
import { errorCors } from './cors.ts';

/** Answers with a JSON value that nobody may cache. @param headers flat, put before */
export function sendJson(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: readonly string[] = [],
): void {
  const body = Buffer.from(JSON.stringify(value));
  response.writeHead(status, [
    ...headers,
    ...['Content-Type', 'application/json', 'Content-Length', String(body.length)],
    ...['Cache-Control', 'no-store'],
    ...errorCors(request),
  ]);
  response.end(body);
}
