import { ServerResponse } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/** Below these, models have WebSockets; llama-swap has none anywhere else. */
const BELOW_A_MODEL = /^\/(?:upstream|comfyui)\//;

/**
 * Whether Berth switches protocols for a request: a WebSocket below a model, without a body. Others ask for upgrades
 * that a server may ignore (`h2c` above all, which some clients send with every request).
 */
export function asksForSocket(request: IncomingMessage, target: string): boolean {
  const { headers, method } = request;
  return (
    method === 'GET' &&
    headers.upgrade?.toLowerCase() === 'websocket' &&
    headers['transfer-encoding'] === undefined &&
    (headers['content-length'] ?? '0') === '0' &&
    BELOW_A_MODEL.test(target)
  );
}

/**
 * Hands a request whose upgrade is ignored back to its server, without the header that asked for it, together with
 * what had come after its head: Node gives every request with `Upgrade` away as soon as anybody listens for upgrades.
 */
export function ignoreUpgrade(
  server: Server,
  request: IncomingMessage,
  socket: Duplex,
  first: Buffer,
): void {
  const { method = 'GET', url = '/', httpVersion, rawHeaders } = request;
  const lines = [`${method} ${url} HTTP/${httpVersion}`];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    const lower = name.toLowerCase();
    if (lower === 'upgrade' || lower === 'http2-settings') continue;
    const kept = lower === 'connection' ? withoutUpgrade(value) : value;
    if (lower !== 'connection' || kept !== '') lines.push(`${name}: ${kept}`);
  }
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.unshift(Buffer.concat([head, first]));
  server.emit('connection', socket);
}

/** A response on a connection that was to become a socket; the connection ends with it. */
export function lastResponse(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  if (socket instanceof Socket) response.assignSocket(socket);
  // Whatever the client sent early was meant for the other protocol.
  socket.resume();
  response.on('finish', () => socket.end());
  return response;
}

function withoutUpgrade(value: string): string {
  return value
    .split(',')
    .map((token) => token.trim())
    .filter((token) => !/^(?:upgrade|http2-settings|)$/i.test(token))
    .join(', ');
}
