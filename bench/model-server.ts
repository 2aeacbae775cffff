import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The one model it has. */
export const MODEL = 'bench';
/** Where queued jobs go. */
export const CHAT = '/v1/chat/completions';
const PIECE = Buffer.alloc(64 * 1024, 0x61);

/** What a request is answered with; `header` is the value of `x-bench`. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * A model server in the measuring process, so that its clock is the clients' clock. Requests are answered by what was
 * set for the value of their `x-bench` header; `/upstream/bench/bytes?size=N` streams N bytes.
 */
export class BenchModelServer {
  private readonly server: Server;
  private readonly answers = new Map<string, Answer>();

  private constructor(server: Server) {
    this.server = server;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      this.handle(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : undefined);
      });
    });
  }

  /** Resolves when it listens, on a free port of 127.0.0.1. */
  static async start(): Promise<BenchModelServer> {
    const server = createServer({ keepAliveTimeout: 60_000 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BenchModelServer(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** From now on requests with this `x-bench` are answered so. */
  answer(mark: string, how: Answer): void {
    this.answers.set(mark, how);
  }

  /** Cuts what is open. */
  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = new URL(request.url ?? '/', 'http://bench');
    if (target.pathname === '/v1/models') {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ object: 'list', data: [{ id: MODEL, object: 'model' }] }));
    } else if (target.pathname === `/upstream/${MODEL}/bytes`) {
      await streamBytes(response, Number(target.searchParams.get('size')));
    } else {
      const how = this.answers.get(String(request.headers['x-bench']));
      if (how === undefined) response.writeHead(404).end();
      else await how(request, response);
    }
  }
}

async function streamBytes(response: ServerResponse, size: number): Promise<void> {
  response.setHeader('content-type', 'application/octet-stream');
  for (let left = size; left > 0; left -= PIECE.length) {
    if (!response.write(PIECE.subarray(0, Math.min(left, PIECE.length))))
      await once(response, 'drain');
  }
  response.end();
}
