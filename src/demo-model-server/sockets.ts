import { ServerResponse, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { comfyModelId, needsGpu, type Catalogue } from './catalogue.ts';
import { comfyPath } from './comfy-endpoint.ts';
import { splitTarget } from './exchange.ts';
import type { RequestLog } from './request-record.ts';
import type { Residency, ResidencyLease } from './residency.ts';
import type { Router } from './routing.ts';
import { asksForWebSocket, WebSocketEnd } from './web-socket.ts';

/** What sockets look at. */
export interface SocketParts {
  readonly catalogue: Catalogue;
  readonly residency: Residency;
  readonly router: Router;
  readonly log: RequestLog;
}

/** A response on the socket of a request that asked for an upgrade and gets none; the connection ends with it. */
export function responseOn(request: IncomingMessage, socket: Duplex): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  if (socket instanceof Socket) response.assignSocket(socket);
  response.on('finish', () => socket.end());
  return response;
}

/**
 * The WebSockets of the models: `ws` of an image model is ComfyUI's, any other path echoes. One below `/upstream/`
 * loads its model and, while it is open, keeps it from being swapped out; those below `/comfyui/` do neither.
 */
export class Sockets {
  readonly #parts: SocketParts;
  readonly #open = new Set<WebSocketEnd>();

  constructor(parts: SocketParts) {
    this.#parts = parts;
  }

  /** Takes the request if there is a WebSocket at its path; false: answer it as any other request. */
  open(request: IncomingMessage, socket: Duplex, first: Buffer): boolean {
    if (!asksForWebSocket(request)) return false;
    const { catalogue, residency } = this.#parts;
    const { path } = splitTarget(request.url ?? '/');
    const isComfy = path.startsWith('/comfyui/');
    const target = isComfy
      ? { model: catalogue.find(comfyModelId), rest: path.slice('/comfyui'.length) }
      : catalogue.findInPath(path.startsWith('/upstream/') ? path.slice('/upstream'.length) : '/');
    const model = target?.model;
    if (model === undefined || target?.rest === '') return false;
    if (isComfy && residency.stateOf(model.id) !== 'ready') return false;
    const { method = 'GET', url = '/', headers, rawHeaders } = request;
    const record = this.#parts.log.arrived({ method, target: url, headers, rawHeaders });
    record.model = model.id;
    const isHolding = !isComfy && needsGpu(model);
    const left = new AbortController();
    const accept = (lease?: ResidencyLease): void => {
      record.status = 101;
      const end = new WebSocketEnd(request, socket, first, () => {
        lease?.release();
        this.#open.delete(end);
        this.#parts.log.ended(record, false);
      });
      this.#open.add(end);
      lease?.unloaded.addEventListener('abort', () => end.destroy(), { once: true });
      this.#serve(end, model.kind === 'image' ? model.id : '', target?.rest ?? '');
    };
    const gone = (): void => {
      left.abort();
      this.#parts.log.ended(record, true);
    };
    if (!isHolding) accept();
    else {
      socket.once('close', gone);
      residency.acquire(model.id, left.signal).then(
        (lease) => {
          socket.off('close', gone);
          accept(lease);
        },
        () => socket.destroy(),
      );
    }
    return true;
  }

  /** Cuts all of them. */
  destroy(): void {
    for (const end of this.#open) end.destroy();
  }

  #serve(end: WebSocketEnd, imageModelId: string, path: string): void {
    end.onMessage = (data, isText) => end.send(isText ? data.toString('utf8') : data);
    if (imageModelId === '' || comfyPath(path) !== '/ws') return;
    const comfy = this.#parts.router.comfyOf(imageModelId);
    const tell = (message: string): void => end.send(message);
    comfy.listeners.add(tell);
    end.onClose = () => comfy.listeners.delete(tell);
    tell(JSON.stringify({ type: 'status', data: { status: { exec_info: comfy.remaining() } } }));
  }
}
