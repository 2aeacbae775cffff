import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import express from 'express';
import type { ErrorRequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { openApiDocument } from './api/open-api-document.ts';
import type { Readiness, ReadyCheck } from './api/ready-schema.ts';
import { answerPreflight } from './cors.ts';
import { drain } from './drain.ts';
import { asGatewayError, sendError } from './error-response.ts';
import { statusOf } from './error-table.ts';
import type { Gatekeeper } from './gatekeeper.ts';
import { watchHalfClose } from './half-close.ts';
import { identityOf } from './identity.ts';
import type { JobRoutesDependencies } from './job-reading.ts';
import { refuseAmbiguous, requestTarget } from './request-form.ts';
import { BOARD_PATH, boardRoutes } from './routes/board.ts';
import type { BoardQueue } from './routes/board.ts';
import type { FilmRoutes } from './routes/films.ts';
import { jobRoutes } from './routes/jobs.ts';
import type { Proxy } from './routes/proxy.ts';
import type { UpgradeRoute } from './routes/upgrade.ts';
import { apiRoutes } from './routes/api.ts';
import { queueRoute } from './routes/queue.ts';
import { serveUpgrades } from './upgrades.ts';

/** The Prometheus text format. */
const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** What the HTTP side needs. */
export interface IngressDependencies {
  proxy: Proxy;
  upgrades: UpgradeRoute;
  jobs: JobRoutesDependencies;
  queues: readonly BoardQueue[];
  checks: () => Promise<ReadyCheck[]>;
  metrics: () => Promise<string>;
  films: FilmRoutes;
  /** The published plan, JSON. */
  plan: () => Promise<string | undefined>;
  gatekeeper: Gatekeeper;
  telemetry: Telemetry;
  onError: (error: unknown) => void;
}

/** The HTTP server of one ingress; not listening yet. */
export function createIngress(dependencies: IngressDependencies): Server {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.use((request, response, next) => {
    watchHalfClose(request, response);
    if (!isAdmitted(request, response, dependencies)) return;
    if (expectant.has(request)) response.writeContinue();
    next();
  });
  app.get('/berth/healthz', (_request, response) => void response.type('text/plain').send('ok\n'));
  app.get('/berth/readyz', async (_request, response) => {
    const checks = await dependencies.checks();
    const isReady = checks.every((check) => check.ok || check.isWarning === true);
    const readiness: Readiness = { ready: isReady, checks };
    response.status(isReady ? 200 : 503).json(readiness);
  });
  app.get('/berth/metrics', async (_request, response) => {
    response.setHeader('Content-Type', METRICS_TYPE);
    response.end(await dependencies.metrics());
  });
  app.get('/berth/queue', queueRoute(dependencies.plan));
  app.use('/berth/jobs', jobRoutes(dependencies.jobs));
  app.use('/berth/films', dependencies.films.router());
  app.use('/berth', apiRoutes(openApiDocument({ bands: dependencies.jobs.bands })));
  app.use(
    BOARD_PATH,
    (request, response, next) => {
      if (identityOf(request).isAdmin) next();
      else
        sendError(
          response,
          new GatewayError('forbidden', 'without keys the board serves its own machine alone'),
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
    const known = asGatewayError(error);
    // What the client did wrong is in its answer and its line of the log.
    if (statusOf(known.code) >= 500) dependencies.onError(error);
    if (response.headersSent) {
      next(error);
      return;
    }
    sendError(response, known);
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
  // Not in Node's documentation or types, but long in its http server: without it half-closed clients lose their answer.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    expectant.add(request);
    app(request, response);
  });
  serveUpgrades(server, dependencies.gatekeeper, dependencies.upgrades);
  return server;
}

/** Requests whose clients wait for a 100 before they send the body: it comes when they have been let in. */
const expectant = new WeakSet<IncomingMessage>();

/** Whether a request is well-formed and the gatekeeper lets it in; one that is not has got its answer. */
function isAdmitted(
  request: IncomingMessage,
  response: ServerResponse,
  { gatekeeper, telemetry }: IngressDependencies,
): boolean {
  let isWellFormed = false;
  try {
    if (request.method === 'OPTIONS' && request.httpVersion.startsWith('1.')) {
      answerPreflight(request, response);
      drain(request);
      return false;
    }
    refuseAmbiguous(request);
    isWellFormed = true;
    gatekeeper.admit(request);
    request.url = requestTarget(request);
    return true;
  } catch (error) {
    const known = asGatewayError(error);
    if (known.code === 'internal_error') throw error;
    telemetry.jobRejected({ code: known.code as Parameters<Telemetry['jobRejected']>[0]['code'] });
    // Nobody knows where the next request begins: behind a malformed one, or when a body that was announced may not come.
    const mustClose = !isWellFormed || expectant.has(request);
    sendError(response, known, mustClose ? ['Connection', 'close'] : []);
    drain(request);
    return false;
  }
}
