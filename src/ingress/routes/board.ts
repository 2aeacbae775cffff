import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import type { RequestHandler } from 'express';

/** Public path of the board. */
export const BOARD_PATH = '/berth/board';

/** BullMQ's queues, handed in as they are: only adapters/redis may name their type. */
export type BoardQueue = ConstructorParameters<typeof BullMQAdapter>[0];

const RETRY = /^\/api\/queues\/gpu\/[^/]+\/retry\/failed$/;

const CONTENT_POLICY = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * Bull Board over our queues: to look at, and to run one failed job again. The server refuses every other write,
 * whatever the page offers; a new method or path of a later Bull Board is refused until it is put on the list.
 */
export function boardRoutes(queues: readonly BoardQueue[]): RequestHandler[] {
  const adapter = new ExpressAdapter();
  adapter.setBasePath(BOARD_PATH);
  createBullBoard({
    queues: queues.map((queue) => new BullMQAdapter(queue)),
    serverAdapter: adapter,
    options: {
      uiConfig: { boardTitle: 'Berth', hideRedisDetails: true, hideDocsLink: true },
    },
  });
  // getRouter() is typed any.
  const router = adapter.getRouter() as RequestHandler;
  return [onlyLookAndRetry, router];
}

const onlyLookAndRetry: RequestHandler = (request, response, next) => {
  response.setHeader('Content-Security-Policy', CONTENT_POLICY);
  response.setHeader('X-Frame-Options', 'DENY');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Referrer-Policy', 'no-referrer');
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const isRetry = request.method === 'PUT' && RETRY.test(request.path);
  // Browsers say where a request comes from; a page of another site may not retry jobs.
  const site = request.get('sec-fetch-site');
  const isOwnPage = site === undefined || site === 'same-origin' || site === 'none';
  if (isRead || (isRetry && isOwnPage)) next();
  else {
    response.status(403).json({
      src: 'berth',
      error: {
        message: 'the board may look and retry one failed job',
        type: 'permission_error',
        param: null,
        code: 'forbidden',
      },
    });
  }
};
