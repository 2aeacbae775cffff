import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { ExpressAdapter } from '@bull-board/express';
import type { Request, RequestHandler, Response } from 'express';
import { asGatewayError } from '../error-response.ts';
import { statusOf } from '../error-table.ts';
import { setPageHeaders } from '../page-headers.ts';

/** Public path of the board. */
export const BOARD_PATH = '/berth/board';

/** A queue of BullMQ, handed in as it is (only adapters/redis may name its type), and what is shown of a job's data. */
export interface BoardQueue {
  readonly queue: ConstructorParameters<typeof BullMQAdapter>[0];
  readonly shown?: (data: never) => object;
}

const UUID = '[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}';
/**
 * The retry of one job or delivery; older Bull Boards named the state it was in. Only the id of a job fits, or that of
 * its event: Bull Board's own `…/gpu/retry/failed` and `…/gpu/clean/retry` are about all jobs.
 */
const RETRY = new RegExp(
  String.raw`^(/api/queues/(?:gpu/${UUID}|webhooks/${UUID}-\d{1,15})/retry)(?:/failed)?$`,
);

type BoardErrorHandler = Parameters<ExpressAdapter['setErrorHandler']>[0];

/** Bull Board's types leave out the second one; its page hides the button by it. */
const OFFERED = { allowRetries: true, allowCompletedRetries: false };

/** Bull Board's page asks a foreign server for fonts; ours asks nobody, and does with those of the system. */
const FOREIGN_LINK = /<link\s[^>]*href="https?:[^>]*>/g;

/**
 * Bull Board over our queues: to look at, and to run one failed job again. The server refuses every other write,
 * whatever the page offers; a new method or path of a later Bull Board is refused until it is put on the list.
 */
export function boardRoutes(queues: readonly BoardQueue[]): RequestHandler[] {
  const adapter = new ExpressAdapter();
  adapter.setBasePath(BOARD_PATH);
  adapter.setErrorHandler((error) => {
    const known = asGatewayError(error);
    // Bull Board lists the statuses it sends itself; Express sends any.
    const status = statusOf(known.code) as NonNullable<ReturnType<BoardErrorHandler>['status']>;
    return { status, body: { error: known.code, message: known.message } };
  });
  createBullBoard({
    queues: queues.map(adapterOf),
    serverAdapter: adapter,
    options: {
      uiConfig: { boardTitle: 'Berth', hideRedisDetails: true, hideDocsLink: true },
    },
  });
  // getRouter() is typed any.
  const router = adapter.getRouter() as RequestHandler;
  return [onlyLookAndRetry, withoutForeignLinks, router];
}

function adapterOf({ queue, shown }: BoardQueue): BullMQAdapter {
  const adapter = new BullMQAdapter(queue, OFFERED);
  if (shown !== undefined) adapter.setFormatter('data', (data: unknown) => shown(data as never));
  return adapter;
}

const onlyLookAndRetry: RequestHandler = (request, response, next) => {
  setPageHeaders(response);
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  const retry = request.method === 'PUT' ? RETRY.exec(request.path)?.[1] : undefined;
  if (isFromOtherSite(request, isRead))
    refuse(response, 'pages of other sites may not use the board');
  else if (isRead) next();
  else if (retry === undefined) refuse(response, 'the board may look and retry one failed job');
  else {
    request.url = retry;
    next();
  }
};

/**
 * Browsers say where a request comes from. A link from elsewhere to the page itself is fine; what another page's
 * script, form or frame asks for is not. Programs say nothing and have the loopback check alone.
 */
function isFromOtherSite(request: Request, isRead: boolean): boolean {
  const site = request.get('sec-fetch-site');
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  const isLink =
    request.get('sec-fetch-mode') === 'navigate' && request.get('sec-fetch-dest') === 'document';
  return !(isRead && isLink && !/^\/api(?:\/|$)/i.test(request.path));
}

function refuse(response: Response, message: string): void {
  response.status(403).json({
    src: 'berth',
    error: { message, type: 'permission_error', param: null, code: 'forbidden' },
  });
}

const withoutForeignLinks: RequestHandler = (request, response, next) => {
  if (!request.path.startsWith('/api/')) {
    const send = response.send.bind(response);
    response.send = (body: unknown) =>
      send(typeof body === 'string' ? body.replace(FOREIGN_LINK, '') : body);
  }
  next();
};
