import { request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { ModelServerFault } from '../../ports/model-server.ts';
import type {
  ModelServerRequest,
  ModelServerSockets,
  UpgradeAnswer,
} from '../../ports/model-server.ts';

const CONNECT_MS = 30_000;
/** After so long in silence the kernel asks whether the other end still lives, in ms. */
const PROBE_MS = 30_000;

/** Upgrades over HTTP/1.1, each on a connection of its own. Connecting is bounded to 30 s, the answer is not. */
export class HttpModelServerSockets implements ModelServerSockets<Duplex> {
  private readonly url: URL;

  /** `url`: origin with an optional path prefix, as in MODEL_SERVER_URL. */
  constructor(url: string) {
    this.url = new URL(url);
  }

  async upgrade(
    request: Pick<ModelServerRequest, 'method' | 'target' | 'headers'>,
    signal: AbortSignal,
  ): Promise<UpgradeAnswer<Duplex>> {
    const asked = this.ask(request);
    const stop = (): void => void asked.destroy();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      return await new Promise<UpgradeAnswer<Duplex>>((resolve, reject) => {
        asked.on('upgrade', (response, socket, first) => {
          probe(socket);
          if (first.length > 0) socket.unshift(first);
          resolve({ kind: 'switched', headers: response.rawHeaders, socket });
        });
        asked.on('response', (response) =>
          resolve({ kind: 'answered', answer: asAnswer(response) }),
        );
        asked.on('error', (error) => reject(fault(error, signal)));
        asked.end();
      });
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  private ask({
    method,
    target,
    headers,
  }: Parameters<ModelServerSockets<Duplex>['upgrade']>[0]): ClientRequest {
    const { url } = this;
    const isSecure = url.protocol === 'https:';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const port = Number(url.port || (isSecure ? 443 : 80));
    const options: RequestOptions & { headers: string[] } = {
      method,
      path: url.pathname.replace(/\/$/, '') + target,
      headers: ['Host', url.host, ...headers],
      maxHeaderSize: 64 * 1024,
      createConnection: () => {
        const socket = isSecure
          ? connectTls({ host, port, servername: host })
          : connect({ host, port, allowHalfOpen: true });
        const late = setTimeout(
          () => socket.destroy(new Error('connecting took too long')),
          CONNECT_MS,
        );
        const settled = (): void => clearTimeout(late);
        socket.once(isSecure ? 'secureConnect' : 'connect', settled).once('close', settled);
        return socket;
      },
    };
    return (isSecure ? httpsRequest : httpRequest)(options);
  }
}

function probe(socket: Duplex & { setKeepAlive?: (on: boolean, ms: number) => void }): void {
  socket.setKeepAlive?.(true, PROBE_MS);
}

function asAnswer(
  response: IncomingMessage,
): Extract<UpgradeAnswer<Duplex>, { kind: 'answered' }>['answer'] {
  return {
    status: response.statusCode ?? 502,
    headers: response.rawHeaders,
    body: pieces(response),
  };
}

async function* pieces(response: IncomingMessage): AsyncIterable<Buffer> {
  try {
    for await (const piece of response) yield piece as Buffer;
  } catch (error) {
    throw new ModelServerFault('truncated', 'the model server broke off its answer', error);
  }
}

function fault(error: NodeJS.ErrnoException, signal: AbortSignal): ModelServerFault {
  if (signal.aborted) return new ModelServerFault('aborted', 'the request was given up', error);
  return error.code?.startsWith('HPE_') === true
    ? new ModelServerFault('invalid', 'the model server did not answer in HTTP', error)
    : new ModelServerFault('unreachable', 'the model server cannot be reached', error);
}
