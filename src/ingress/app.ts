import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import express from 'express';
import type { ErrorRequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import { asGatewayError, sendError } from './error-response.ts';
import { isLoopback } from './loopback.ts';
import { BOARD_PATH, boardRoutes } from './routes/board.ts';
import type { BoardQueue } from './routes/board.ts';
import type { Proxy } from './routes/proxy.ts';

/** The Prometheus text format. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** One thing readyz looks at. */
export interface ReadyCheck {
  name: string;
  ok: boolean;
  /** What is wrong and what to do, or what is right. */
  detail: string;
  /** A warning is shown but leaves the gateway ready. */
  isWarning?: boolean;
}

/** What the HTTP side needs. */
export interface IngressDependencies {
  proxy: Proxy;
  queues: readonly BoardQueue[];
  checks: () => Promise<ReadyCheck[]>;
  metrics: () => Promise<string>;
  /** Serve others than loopback although no keys are configured (BERTH_ALLOW_OPEN). */
  allowOpen: boolean;
  onError: (error: unknown) => void;
}

/** The HTTP server of one ingress; not listening yet. */
export function createIngress(dependencies: IngressDependencies): Server {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response, next) => {
    if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0') {
      sendError(
        response,
        new GatewayError('bad_request', 'only HTTP/1.0 and HTTP/1.1 are spoken here'),
        ['Connection', 'close'],
      );
    } else if (request.path === '/berth/healthz' || dependencies.allowOpen || isLoopback(request))
      next();
    else
      sendError(
        response,
        new GatewayError('forbidden', 'without keys this gateway serves its own machine alone'),
      );
  });
  app.get('/berth/healthz', (_request, response) => void response.type('text/plain').send('ok\n'));
  app.get('/berth/readyz', async (_request, response) => {
    const checks = await dependencies.checks();
    const isReady = checks.every((check) => check.ok || check.isWarning === true);
    response.status(isReady ? 200 : 503).json({ ready: isReady, checks });
  });
  app.get('/berth/metrics', async (_request, response) => {
    response.setHeader('Content-Type', METRICS_TYPE);
    response.end(await dependencies.metrics());
  });
  app.use(
    BOARD_PATH,
    (request, response, next) => {
      if (isLoopback(request)) next();
      else
        sendError(
          response,
          new GatewayError('forbidden', 'the board serves its own machine alone'),
        );
    },
    ...boardRoutes(dependencies.queues),
  );
  app.use('/berth', (_request, response) => {
    sendError(response, new GatewayError('job_not_found', 'there is nothing at this path'));
  });
  app.use(async (request: IncomingMessage, response: ServerResponse) =>
    dependencies.proxy.handle(request, response),
  );
  const onError: ErrorRequestHandler = (error, _request, response, next) => {
    dependencies.onError(error);
    if (response.headersSent) {
      next(error);
      return;
    }
    sendError(response, asGatewayError(error));
  };
  app.use(onError);

  const server = createServer(
    {
      maxHeaderSize: 64 * 1024,
      requestTimeout: 0,
      headersTimeout: 60_000,
      keepAliveTimeout: 65_000,
    },
    app,
  );
  server.timeout = 0;
  return server;
}
