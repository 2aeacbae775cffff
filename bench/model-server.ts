import { once } from 'node:events';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The models it has; the first is the one that measurements use unless they say otherwise. */
export const MODELS = ['bench', 'bench-1', 'bench-2', 'bench-3'] as const;
/** Where queued jobs go. */
export const CHAT = '/v1/chat/completions';
const PIECE = Buffer.alloc(64 * 1024, 0x61);

/** What a request is answered with; `header` is the value of `x-bench`. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/**
 * A model server in the measuring process, so that its clock is the clients' clock. Requests are answered by what was
 * set for the value of their `x-bench` header; `/upstream/bench/bytes?size=N` streams N bytes. It tells which model is
 * resident as llama-swap does: that of the last request, loaded in no time. The bare queue's requests, which come from
 * another worker, count for nothing there.
 */
export class BenchModelServer {
  private readonly server: Server;
  private readonly answers = new Map<string, Answer>();
  private readonly listeners = new Set<ServerResponse>();
  private resident: string = MODELS[0];

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

  /** This model is resident from now on; who listens is told. */
  load(model: string): void {
    if (model === this.resident) return;
    this.resident = model;
    for (const listener of this.listeners) listener.write(this.modelStatus());
  }

  /** Cuts what is open. */
  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private modelStatus(): string {
    const rows = MODELS.map((id) => ({ id, state: id === this.resident ? 'ready' : 'stopped' }));
    const data = JSON.stringify({ type: 'modelStatus', data: JSON.stringify(rows) });
    return `event:message\ndata:${data}\n\n`;
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = new URL(request.url ?? '/', 'http://bench');
    if (target.pathname === '/v1/models') {
      const data = MODELS.map((id) => ({ id, object: 'model' }));
      answerJson(response, { object: 'list', data });
    } else if (target.pathname === '/running') {
      answerJson(response, { running: [{ model: this.resident, state: 'ready' }] });
    } else if (target.pathname === '/api/events') {
      response.setHeader('content-type', 'text/event-stream');
      response.write(this.modelStatus());
      this.listeners.add(response);
      response.once('close', () => this.listeners.delete(response));
    } else if (target.pathname === `/upstream/${MODELS[0]}/bytes`) {
      await streamBytes(response, Number(target.searchParams.get('size')));
    } else {
      const mark = String(request.headers['x-bench']);
      const how = this.answers.get(mark);
      const model = request.headers['x-bench-model'];
      if (mark !== 'bare' && typeof model === 'string') this.load(model);
      if (how === undefined) response.writeHead(404).end();
      else await how(request, response);
    }
  }
}

function answerJson(response: ServerResponse, value: object): void {
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(value));
}

async function streamBytes(response: ServerResponse, size: number): Promise<void> {
  response.setHeader('content-type', 'application/octet-stream');
  for (let left = size; left > 0; left -= PIECE.length) {
    if (!response.write(PIECE.subarray(0, Math.min(left, PIECE.length))))
      await once(response, 'drain');
  }
  response.end();
}
