import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import { endToEnd } from '../../gateway/headers.ts';
import { ModelServerFault } from '../../ports/model-server.ts';
import type { ModelServer, ModelServerRequest } from '../../ports/model-server.ts';
import { sendError } from '../error-response.ts';
import { HttpResponseSink } from '../response-sink.ts';
import type { HeaderRules } from '../submission.ts';
import { headersUpstream } from '../upstream-headers.ts';

/** Requests that need no GPU: straight to the model server and back, as they are. */
export class PassThrough {
  private readonly modelServer: ModelServer;
  private readonly headerRules: HeaderRules;

  constructor(modelServer: ModelServer, headerRules: HeaderRules) {
    this.modelServer = modelServer;
    this.headerRules = headerRules;
  }

  /** Passes a request on while its body still comes in. */
  async stream(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const length = request.headers['content-length'];
    const hasBody =
      length !== undefined
        ? Number(length) > 0
        : request.headers['transfer-encoding'] !== undefined;
    const bytes = length === undefined ? undefined : Number(length);
    await this.send(
      request,
      response,
      hasBody ? { stream: request as AsyncIterable<Buffer>, bytes } : null,
    );
  }

  /** Passes a request on with a body that was read already. */
  async send(
    request: IncomingMessage,
    response: ServerResponse,
    body: ModelServerRequest['body'],
  ): Promise<void> {
    const abort = new AbortController();
    response.on('close', () => abort.abort());
    try {
      const answer = await this.modelServer.call(
        {
          method: request.method ?? 'GET',
          target: request.url ?? '/',
          headers: headersUpstream(request, this.headerRules),
          body,
        },
        abort.signal,
      );
      const sink = new HttpResponseSink(response, () => []);
      sink.head({ status: answer.status, headers: endToEnd(answer.headers) });
      response.flushHeaders();
      for await (const piece of answer.body) await sink.write(piece);
      sink.end();
    } catch (error) {
      if (abort.signal.aborted || response.destroyed) return;
      if (response.headersSent) response.destroy();
      else if (error instanceof ModelServerFault) {
        sendError(
          response,
          new GatewayError(
            error.kind === 'invalid' ? 'model_server_invalid' : 'model_server_unreachable',
            error.message,
          ),
        );
      } else throw error;
    }
  }
}
