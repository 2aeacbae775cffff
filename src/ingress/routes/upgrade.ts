import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { GatewayError } from '../../errors.ts';
import { endToEnd } from '../../gateway/headers.ts';
import { ModelServerFault } from '../../ports/model-server.ts';
import type {
  ModelCatalogue,
  ModelServerAnswer,
  ModelServerSockets,
  ModelStates,
  UpgradeAnswer,
} from '../../ports/model-server.ts';
import { sendError } from '../error-response.ts';
import { identityOf } from '../identity.ts';
import { HttpResponseSink } from '../response-sink.ts';
import { upstreamCandidates } from '../route-table.ts';
import { joinSockets } from '../socket-pair.ts';
import type { SocketPair } from '../socket-pair.ts';
import { lastResponse } from '../upgrade-request.ts';
import { headersUpstream } from '../upstream-headers.ts';
import type { HeaderRules } from '../upstream-headers.ts';

/** What sockets need. */
export interface UpgradeDependencies {
  modelServer: ModelServerSockets<Duplex>;
  catalogue: Pick<ModelCatalogue, 'lookUp' | 'resolve'> & ModelStates;
  /** Whether a model needs no GPU. */
  needsNoGpu: (modelId: string) => boolean;
  headerRules: HeaderRules;
  /** Sockets open at one time; default 256. */
  most?: number;
}

/** How long the model server may think about an upgrade, in ms. */
const ANSWER_MS = 60_000;
/** llama-swap answers for its own ComfyUI whether it is loaded, and does not wait for its sockets. */
const COMFY = '/comfyui/';

/** One socket that is open. */
interface OpenSocket {
  /** The model it keeps from being swapped out; undefined: none. */
  model: string | undefined;
  pair: SocketPair;
}

/**
 * WebSockets of the models: raw bytes between client and model server, without a place in the queue.
 *
 * 1. No more than so many at one time, and with keys configured none for pages of other origins: browsers show a
 *    remembered key for every page that opens a socket, and let the page read it.
 * 2. A socket below `/upstream/` must find its model loaded: it never starts a load. A model that the model server does
 *    not know is the model server's to refuse.
 * 3. The model server is asked; nothing the client sent is passed on before it has agreed.
 * 4. Anything but a switch of protocols is passed on as it is, and the connection ends.
 */
export class UpgradeRoute {
  private readonly dependencies: UpgradeDependencies;
  private readonly open = new Set<OpenSocket>();
  private asking = 0;
  private isClosed = false;

  constructor(dependencies: UpgradeDependencies) {
    this.dependencies = dependencies;
  }

  /** Models that open sockets keep from being swapped out, canonical ids. */
  get heldModels(): ReadonlySet<string> {
    return new Set([...this.open].flatMap(({ model }) => (model === undefined ? [] : [model])));
  }

  /** Cuts the sockets of a model, so that another one can be loaded. Returns how many. */
  giveWay(model: string): number {
    const cut = [...this.open].filter((socket) => socket.model === model);
    for (const { pair } of cut) pair.destroy();
    return cut.length;
  }

  /** Takes no more and ends those that are open: a socket would never come to its end by itself. */
  close(): void {
    this.isClosed = true;
    for (const { pair } of this.open) pair.end();
  }

  /** Serves a request that was let in, on its connection. Never rejects. */
  async handle(request: IncomingMessage, socket: Duplex): Promise<void> {
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    socket.on('error', leave).on('close', leave);
    try {
      this.check(request); // 1
      this.asking += 1;
      try {
        const model = await this.heldBy(request.url ?? '/'); // 2
        const answer = await this.ask(request, gone.signal); // 3
        if (answer.kind === 'switched') this.join(socket, answer, model);
        else await relay(lastResponse(request, socket), answer.answer); // 4
      } finally {
        this.asking -= 1;
        socket.off('close', leave);
      }
    } catch (error) {
      if (socket.destroyed) return;
      sendError(lastResponse(request, socket), known(error));
    }
  }

  private check(request: IncomingMessage): void {
    const { most = 256 } = this.dependencies;
    if (this.isClosed) throw new GatewayError('shutting_down', 'the gateway is shutting down');
    if (this.open.size + this.asking >= most)
      throw new GatewayError('queue_full', 'too many sockets are open');
    if (identityOf(request).keyName !== null && isForeignPage(request))
      throw new GatewayError('forbidden', 'pages of other origins may not open sockets here');
  }

  private async heldBy(target: string): Promise<string | undefined> {
    const { catalogue, needsNoGpu } = this.dependencies;
    const [path = '/'] = target.split('?', 1);
    if (path.startsWith(COMFY)) return undefined;
    for (const id of upstreamCandidates(path)) {
      const found = await catalogue.lookUp(id);
      if (found === 'unknown') continue;
      if (needsNoGpu(id)) return undefined;
      const state = await catalogue.stateOf(id);
      if (state === 'unknown')
        throw new GatewayError('model_server_unreachable', 'the model server cannot be read');
      if (state === 'ready') return catalogue.resolve(id);
      // Of an id that is only presumed to be one, a shorter one may be meant.
      if (found === 'known') throw notLoaded(id);
    }
    return undefined;
  }

  private async ask(request: IncomingMessage, gone: AbortSignal): Promise<UpgradeAnswer<Duplex>> {
    const late = AbortSignal.timeout(ANSWER_MS);
    const { modelServer, headerRules } = this.dependencies;
    const headers = headersUpstream(request, headerRules);
    headers.push('Connection', 'Upgrade', 'Upgrade', 'websocket');
    const asked = { method: 'GET', target: request.url ?? '/', headers };
    try {
      return await modelServer.upgrade(asked, AbortSignal.any([gone, late]));
    } catch (error) {
      if (!late.aborted) throw error;
      throw new GatewayError('model_server_timeout', 'the model server did not answer the upgrade');
    }
  }

  private join(
    socket: Duplex,
    { headers, socket: upstream }: Extract<UpgradeAnswer<Duplex>, { kind: 'switched' }>,
    model: string | undefined,
  ): void {
    if (socket.destroyed || this.isClosed) {
      upstream.destroy();
      socket.destroy();
      return;
    }
    const flat = [...endToEnd(headers), 'Connection', 'Upgrade', 'Upgrade', 'websocket'];
    const lines = ['HTTP/1.1 101 Switching Protocols'];
    for (let index = 0; index + 1 < flat.length; index += 2)
      lines.push(`${flat[index] ?? ''}: ${flat[index + 1] ?? ''}`);
    socket.write(Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'));
    const entry: OpenSocket = {
      model,
      pair: joinSockets(socket, upstream, () => this.open.delete(entry)),
    };
    this.open.add(entry);
  }
}

const notLoaded = (id: string): GatewayError =>
  new GatewayError('model_unavailable', `${id} is not loaded, and a socket may not load it`);

function isForeignPage({ headers }: IncomingMessage): boolean {
  const { origin, host = '' } = headers;
  return (
    origin !== undefined && origin.replace(/^https?:\/\//i, '').toLowerCase() !== host.toLowerCase()
  );
}

async function relay(response: ServerResponse, answer: ModelServerAnswer): Promise<void> {
  const sink = new HttpResponseSink(response, () => []);
  sink.head({ status: answer.status, headers: endToEnd(answer.headers) });
  try {
    for await (const piece of answer.body) await sink.write(piece);
    sink.end();
  } catch {
    response.destroy();
  }
}

function known(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (!(error instanceof ModelServerFault))
    return new GatewayError('internal_error', 'the gateway failed to open the socket', {
      cause: error,
    });
  const code = error.kind === 'invalid' ? 'model_server_invalid' : 'model_server_unreachable';
  return new GatewayError(code, error.message);
}
