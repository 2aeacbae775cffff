import { errorEnvelope } from '../../src/demo-model-server/errors.ts';
import type { DemoFault } from '../../src/demo-model-server/fault.ts';
import type { DemoModelServerOptions } from '../../src/demo-model-server/options.ts';
import type { RequestRecord } from '../../src/demo-model-server/request-record.ts';
import { createDemoModelServer, type DemoModelServer } from '../../src/demo-model-server/server.ts';

export type { DemoFault, RequestRecord };

/** Which requests a fault is for. The body has been read, the model is known, nothing has been answered. */
export type RequestPredicate = (request: RequestRecord) => boolean;

/** How often and to whom a fault happens. */
export interface FaultScope {
  /** Default: requests that need the GPU. */
  readonly where?: RequestPredicate;
  /** Default 1; Infinity until the returned function is called. */
  readonly times?: number;
}

/** A request held at the gate: its model is loaded, it counts as running, nothing has been answered. */
export interface Gate {
  /** Resolves with the first request that reached the gate. */
  readonly arrived: Promise<RequestRecord>;
  /** Lets it (and whoever else is held here) go on; with a fault, that happens instead of the usual answer. */
  release(fault?: DemoFault): void;
}

interface ScriptedFault {
  readonly where: RequestPredicate;
  readonly fault: (request: RequestRecord) => DemoFault;
  left: number;
}

const needsGpu: RequestPredicate = (request) => request.gpu;

const fast = { coldLoadMs: 1, tokensPerSecond: 5000, imageMs: 2, videoMs: 5, keepBodies: true };

/** The demo model server on a free loopback port, fast and keeping bodies unless told otherwise, with faults to order. */
export class ScriptedModelServer {
  readonly #server: DemoModelServer;
  readonly #script: ScriptedFault[] = [];
  readonly #gates = new Set<Gate>();
  #port = 0;

  constructor(options: Omit<DemoModelServerOptions, 'intercept'> = {}) {
    const intercept = (request: RequestRecord): DemoFault | undefined => this.#next(request);
    this.#server = createDemoModelServer({ ...fast, ...options, intercept });
  }

  /** Listens on the port it had before, a free one the first time. Until then connections are refused. */
  async open(): Promise<void> {
    this.#port = await this.#server.listen(this.#port, '127.0.0.1');
  }

  /** Refuses connections from now on and cuts those there are; `open` ends it, models stay loaded. */
  async refuseConnections(): Promise<void> {
    await this.#server.close();
  }

  /** Opens every gate and stops listening. */
  async close(): Promise<void> {
    for (const gate of this.#gates) gate.release();
    await this.#server.close();
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Every request, control routes too, oldest first. */
  get record(): readonly RequestRecord[] {
    return this.#server.record;
  }

  /** Requests that held the GPU at the same time as another one; 0 is what a gateway must show. */
  get overlaps(): number {
    return this.#server.overlaps;
  }

  get maxConcurrent(): number {
    return this.#server.maxConcurrent;
  }

  get residentModel(): string | null {
    return this.#server.residentModel;
  }

  get loads(): number {
    return this.#server.loads;
  }

  get swaps(): number {
    return this.#server.swaps;
  }

  /** Requests that took the GPU, in the order they did; those answered by a scripted status did not. */
  generations(): RequestRecord[] {
    return this.record
      .filter((request) => request.gpuStartedAtMs !== null)
      .toSorted((a, b) => Number(a.gpuStartedAtMs) - Number(b.gpuStartedAtMs));
  }

  /** Requests that needed the GPU, refused ones too, in order of arrival. */
  attempts(): RequestRecord[] {
    return this.record.filter(needsGpu);
  }

  /** Orders a fault; faults are used up in the order they were ordered. Returns a function that takes it back. */
  fault(fault: DemoFault, scope: FaultScope = {}): () => void {
    return this.#order(() => fault, scope);
  }

  /** Holds the next matching request (every one with `times: Infinity`) until the gate is released. */
  hold(where: RequestPredicate = needsGpu, times = 1): Gate {
    let arrive: (request: RequestRecord) => void;
    let open: (fault: DemoFault | undefined) => void;
    const arrived = new Promise<RequestRecord>((resolve) => (arrive = resolve));
    const until = new Promise<DemoFault | undefined>((resolve) => (open = resolve));
    const takeBack = this.#order(
      (request) => ({ kind: 'hold', until, onArrival: () => arrive(request) }),
      { where, times },
    );
    const gate: Gate = {
      arrived,
      release: (fault) => {
        this.#gates.delete(gate);
        takeBack();
        open(fault);
      },
    };
    this.#gates.add(gate);
    return gate;
  }

  #order(fault: ScriptedFault['fault'], scope: FaultScope): () => void {
    const scripted = { fault, where: scope.where ?? needsGpu, left: scope.times ?? 1 };
    this.#script.push(scripted);
    return () => {
      scripted.left = 0;
    };
  }

  #next(request: RequestRecord): DemoFault | undefined {
    const scripted = this.#script.find((entry) => entry.left > 0 && entry.where(request));
    if (scripted === undefined) return undefined;
    scripted.left -= 1;
    return scripted.fault(request);
  }
}

/** A ScriptedModelServer that already listens; close it in `afterEach`. */
export async function startDemoModelServer(
  options: Omit<DemoModelServerOptions, 'intercept'> = {},
): Promise<ScriptedModelServer> {
  const server = new ScriptedModelServer(options);
  await server.open();
  return server;
}

const json = { 'Content-Type': 'application/json' };
const sse = { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' };

/** llama-swap's own 429: too many requests for one model. */
export function tooManyRequests(retryAfter = '1'): DemoFault {
  const body = errorEnvelope(429, 'Too many requests');
  return { kind: 'answer', status: 429, headers: { ...json, 'Retry-After': retryAfter }, body };
}

/** llama-swap's own 503: the model's process vanished before the request reached it. */
export function notReady(modelId = 'demo-chat-small'): DemoFault {
  const body = errorEnvelope(503, `[${modelId}] process is not ready`);
  return { kind: 'answer', status: 503, headers: json, body };
}

/** llama-swap's own 500 for something that may pass: an unload, a failed load, a reload. */
export function transientFailure(cause = 'group: model unloaded'): DemoFault {
  const body = errorEnvelope(500, `unspecific error: ${cause}`);
  return { kind: 'answer', status: 500, headers: json, body };
}

/** An error of the model's own server: it has no `src`. */
export function modelFailure(status = 500, message = 'out of memory'): DemoFault {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  const body = JSON.stringify({ error: { code: status, message, type } });
  return { kind: 'answer', status, headers: json, body };
}

/** llama-swap before v251: the error is a bare string. */
export function oldStyleError(status: number, message: string): DemoFault {
  const body = JSON.stringify({ src: 'llama-swap', error: message });
  return { kind: 'answer', status, headers: json, body };
}

/** What a proxy in between says when the model server is gone. */
export function htmlBadGateway(): DemoFault {
  const body = '<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>\n';
  return { kind: 'answer', status: 502, headers: { 'Content-Type': 'text/html' }, body };
}

/** 200 and not one byte of body. */
export function emptyAnswer(): DemoFault {
  return { kind: 'answer', status: 200, headers: json };
}

/** Takes the request and never answers. */
export function silence(): DemoFault {
  return { kind: 'silence' };
}

/** Closes the connection before any byte. */
export function hangUp(): DemoFault {
  return { kind: 'hang_up' };
}

/** The head of a stream, perhaps a first piece, then nothing. */
export function headThenSilence(firstPiece?: string): DemoFault {
  const head = { kind: 'head_then_silence', status: 200, headers: sse } as const;
  return firstPiece === undefined ? head : { ...head, firstPiece };
}

/** The usual answer, its socket destroyed after so many writes (events of a stream). */
export function truncated(afterWrites: number): DemoFault {
  return { kind: 'cut', afterWrites, how: 'destroy' };
}

/** The usual answer, ended after so many writes as if all were well: no `[DONE]`, a tidy last chunk. */
export function cleanEarlyEnd(afterWrites: number): DemoFault {
  return { kind: 'cut', afterWrites, how: 'end' };
}

/** The usual answer, silent after so many writes. */
export function stuckAfter(afterWrites: number): DemoFault {
  return { kind: 'cut', afterWrites, how: 'silence' };
}

/** A stream in which the same piece comes again and again; an SSE comment unless another is given. */
export function drip(everyMs: number, times = Infinity, piece = ': ping\n\n'): DemoFault {
  return { kind: 'drip', headers: sse, piece, everyMs, times };
}
