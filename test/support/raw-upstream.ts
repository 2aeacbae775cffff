import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { readChunks } from './raw-client.ts';

/** A request as its bytes came. */
export interface UpstreamRequest {
  /** Such as `POST /v1/completions HTTP/1.1`. */
  line: string;
  /** Header lines, spelling and order kept, one character a byte. */
  headers: string[];
  /** Null when the server was told to hash only. */
  body: Buffer;
  bodyBytes: number;
  bodySha256: string;
}

/** What is written back, and how. */
export type Script = (socket: Socket, request: UpstreamRequest) => void | Promise<void>;

/** Ids that are listed and therefore queued for. */
export const MODELS = ['m', 'org/model:tag', 'org/model', 'whisper-1'];
/** Bodies up to this size are kept, larger ones only hashed. */
const KEPT_BYTES = 1024 * 1024;
const NO_RUNNING = JSON.stringify({ running: [] });
const LIST = JSON.stringify({ object: 'list', data: MODELS.map((id) => ({ id })) });
const STATUS = JSON.stringify({
  type: 'modelStatus',
  data: JSON.stringify(MODELS.map((id) => ({ id, name: '', description: '', state: 'stopped' }))),
});
/** What the gateway itself asks for; recorded apart. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['/v1/models', answerOf(200, 'application/json', LIST)],
  ['/running', answerOf(200, 'application/json', NO_RUNNING)],
  ['/api/profiles', answerOf(404, 'text/plain', 'no')],
  [
    '/api/events',
    `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nevent:message\ndata:${STATUS}\n\n`,
  ],
]);

/** A whole answer with its length. */
export function answerOf(status: number, type: string, body: string, more = ''): string {
  const length = Buffer.byteLength(body, 'latin1');
  return `HTTP/1.1 ${status} Any\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n${more}\r\n${body}`;
}

/**
 * A model server that writes exactly the bytes a test tells it to. The lists that Berth reads are answered by
 * themselves; everything else is recorded and answered by the script, `{"ok":true}` unless told otherwise.
 */
export class RawUpstream {
  readonly requests: UpstreamRequest[] = [];
  /** Connections there are. */
  readonly sockets = new Set<Socket>();
  script: Script = ok;
  /** Called instead when a head has come, before its body. */
  onHead: ((socket: Socket, line: string) => void) | undefined;
  private readonly server: Server;
  url = '';

  private constructor() {
    this.server = createServer((socket) => {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => undefined);
      socket.on('close', () => this.sockets.delete(socket));
      this.read(socket);
    });
  }

  static async start(): Promise<RawUpstream> {
    const upstream = new RawUpstream();
    upstream.server.listen(0, '127.0.0.1');
    await once(upstream.server, 'listening');
    upstream.url = `http://127.0.0.1:${(upstream.server.address() as { port: number }).port}`;
    return upstream;
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  /** Forgets what came and answers as at first. */
  reset(): void {
    this.requests.length = 0;
    this.script = ok;
    this.onHead = undefined;
  }

  /** Answers every request with these bytes from now on. */
  answers(bytes: string): void {
    this.script = (socket) => void socket.write(bytes, 'latin1');
  }

  private read(socket: Socket): void {
    let buffered: Buffer = Buffer.alloc(0);
    let open: Open | undefined;
    socket.on('data', (piece) => {
      buffered = buffered.length === 0 ? piece : Buffer.concat([buffered, piece]);
      for (;;) {
        open ??= headIn(buffered);
        if (open === undefined) return;
        if (this.onHead !== undefined && !OWN.has(open.request().line.split(' ')[1] ?? '')) {
          this.onHead(socket, open.request().line);
          return;
        }
        buffered = buffered.subarray(open.headBytes);
        open.headBytes = 0;
        const rest = open.take(buffered);
        if (rest === undefined) {
          if (!open.isChunked) buffered = Buffer.alloc(0);
          return;
        }
        buffered = rest;
        this.serve(socket, open.request());
        open = undefined;
      }
    });
  }

  private serve(socket: Socket, request: UpstreamRequest): void {
    const target = request.line.split(' ')[1] ?? '';
    const own = request.line.startsWith('GET ') ? OWN.get(target) : undefined;
    if (own !== undefined && !request.headers.includes('X-Test: 1')) {
      socket.write(own);
      if (own.includes('Connection: close')) socket.end();
      return;
    }
    this.requests.push(request);
    void this.script(socket, request);
  }
}

const ok: Script = (socket) => void socket.write(answerOf(200, 'application/json', '{"ok":true}'));

interface Open {
  headBytes: number;
  isChunked: boolean;
  /** Takes bytes of the body; what is left over when it is whole. */
  take: (bytes: Buffer) => Buffer | undefined;
  request: () => UpstreamRequest;
}

function headIn(bytes: Buffer): Open | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const [line = '', ...headers] = bytes.toString('latin1', 0, end).split('\r\n');
  const value = (name: string): string | undefined =>
    headers
      .find((text) => text.toLowerCase().startsWith(`${name}:`))
      ?.slice(name.length + 1)
      .trim();
  const isChunked = value('transfer-encoding')?.toLowerCase() === 'chunked';
  let left = isChunked ? 0 : Number(value('content-length') ?? 0);
  const hash = createHash('sha256');
  const kept: Buffer[] = [];
  let bodyBytes = 0;
  const keep = (piece: Buffer): void => {
    hash.update(piece);
    bodyBytes += piece.length;
    if (bodyBytes <= KEPT_BYTES) kept.push(piece);
  };
  return {
    headBytes: end + 4,
    isChunked,
    take: (piece) => {
      if (isChunked) {
        const found = readChunks(piece.toString('latin1'));
        if (found === undefined) return undefined;
        keep(Buffer.from(found.body, 'latin1'));
        return piece.subarray(found.end);
      }
      keep(piece.subarray(0, left));
      const rest = piece.subarray(left);
      left -= Math.min(left, piece.length);
      return left > 0 ? undefined : rest;
    },
    request: () => ({
      line,
      headers,
      body: Buffer.concat(kept),
      bodyBytes,
      bodySha256: hash.copy().digest('hex'),
    }),
  };
}
