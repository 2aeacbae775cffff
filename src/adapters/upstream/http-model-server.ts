import { Readable } from 'node:stream';
import { Agent, errors } from 'undici';
import type { Dispatcher } from 'undici';
import { ModelServerFault } from '../../ports/model-server.ts';
import type {
  ModelServer,
  ModelServerAnswer,
  ModelServerRequest,
} from '../../ports/model-server.ts';

/** Where the model server is. */
export interface HttpModelServerOptions {
  /** Origin with an optional path prefix, as in MODEL_SERVER_URL. */
  url: string;
}

/**
 * The model server over HTTP/1.1. Connecting is bounded to 30 s, as in llama-swap; nothing else is: headers and body
 * may be silent for as long as a generation takes.
 */
export class HttpModelServer implements ModelServer {
  readonly origin: string;
  private readonly prefix: string;
  private readonly agent: Agent;

  constructor(options: HttpModelServerOptions) {
    const url = new URL(options.url);
    this.origin = url.origin;
    this.prefix = url.pathname.replace(/\/$/, '');
    this.agent = new Agent({
      connect: { timeout: 30_000 },
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: 4_000,
      maxHeaderSize: 64 * 1024,
      pipelining: 1,
      connections: null,
    });
  }

  async call(request: ModelServerRequest, signal: AbortSignal): Promise<ModelServerAnswer> {
    const { body } = request;
    const headers = [...request.headers];
    if (body !== null && !Buffer.isBuffer(body) && body.bytes !== undefined)
      headers.push('content-length', String(body.bytes));
    let response: Dispatcher.ResponseData;
    try {
      response = await this.agent.request({
        origin: this.origin,
        path: this.prefix + request.target,
        method: request.method,
        headers,
        body:
          body === null || Buffer.isBuffer(body)
            ? body
            : Readable.from(body.stream, { objectMode: false }),
        signal,
        responseHeaders: 'raw',
      });
    } catch (error) {
      throw fault(error, signal, 'unreachable');
    }
    return {
      status: response.statusCode,
      // With responseHeaders: 'raw' undici hands out the flat list its types do not know.
      headers: response.headers as unknown as string[],
      body: pieces(response.body, signal),
    };
  }

  /** Closes idle connections; what runs is cut. */
  async close(): Promise<void> {
    await this.agent.destroy();
  }
}

async function* pieces(body: AsyncIterable<Buffer>, signal: AbortSignal): AsyncIterable<Buffer> {
  try {
    for await (const piece of body) yield piece;
  } catch (error) {
    throw fault(error, signal, 'truncated');
  }
}

function fault(
  error: unknown,
  signal: AbortSignal,
  otherwise: 'unreachable' | 'truncated',
): ModelServerFault {
  if (signal.aborted) return new ModelServerFault('aborted', 'the request was given up', error);
  if (error instanceof errors.HTTPParserError || error instanceof errors.HeadersOverflowError) {
    return new ModelServerFault('invalid', 'the model server did not answer in HTTP', error);
  }
  return otherwise === 'unreachable'
    ? new ModelServerFault('unreachable', 'the model server cannot be reached', error)
    : new ModelServerFault('truncated', 'the model server broke off its answer', error);
}
