import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';

/** A request as Node hands it out, without a connection. */
export function incomingRequest(
  headers: readonly (readonly [name: string, value: string])[] = [],
  options: { method?: string; target?: string; from?: string } = {},
): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, 'remoteAddress', { value: options.from ?? '127.0.0.1' });
  const request = new IncomingMessage(socket);
  request.method = options.method ?? 'GET';
  request.url = options.target ?? '/v1/models';
  for (const [name, value] of [['Host', '127.0.0.1:8080'] as const, ...headers]) {
    const key = name.toLowerCase();
    // Values travel as bytes and arrive as one character a byte.
    const text = Buffer.from(value.trim()).toString('latin1');
    request.rawHeaders.push(name, text);
    request.headers[key] ??= text;
    (request.headersDistinct[key] ??= []).push(text);
  }
  return request;
}
