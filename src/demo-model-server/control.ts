import type { Catalogue } from './catalogue.ts';
import { sendError, sendPlain } from './errors.ts';
import type { EventFeed } from './events.ts';
import type { Exchange } from './exchange.ts';
import { listModels, listRunning } from './listings.ts';
import type { Profiles } from './profiles.ts';
import type { Residency } from './residency.ts';

/** A route that needs no GPU. GET stands for HEAD too. */
export interface ControlRoute {
  readonly methods: readonly string[];
  readonly run: (exchange: Exchange) => Promise<void>;
}

/** What the control routes report on and act upon. */
export interface ControlParts {
  readonly catalogue: Catalogue;
  readonly residency: Residency;
  readonly profiles: Profiles;
  readonly events: EventFeed;
}

const json = { 'Content-Type': 'application/json' };
const plainText = { 'Content-Type': 'text/plain; charset=utf-8' };
/** Answers with a redirect as Go's router does; GET gets a short page with it. */
export async function redirect(
  exchange: Exchange,
  status: number,
  location: string,
): Promise<void> {
  const words: Record<number, string> = {
    301: 'Moved Permanently',
    302: 'Found',
    308: 'Permanent Redirect',
  };
  const isGet = exchange.method === 'GET' || exchange.method === 'HEAD';
  const page = isGet
    ? `<a href="${location.replaceAll('"', '&#34;')}">${words[status] ?? ''}</a>.\n\n`
    : '';
  const type = isGet ? { 'Content-Type': 'text/html; charset=utf-8' } : {};
  await exchange.answer.send(status, { Location: location, ...type }, page);
}

/** Every exact path that needs no GPU. */
export function controlRoutes(parts: ControlParts): ReadonlyMap<string, ControlRoute> {
  const { catalogue, residency, profiles, events } = parts;
  const get = (run: ControlRoute['run']): ControlRoute => ({ methods: ['GET', 'HEAD'], run });
  const ok = get(({ answer }) => answer.send(200, plainText, 'OK'));
  const sendJson = ({ answer }: Exchange, value: object): Promise<void> =>
    answer.send(200, json, `${JSON.stringify(value)}\n`);
  const models = get(({ answer, headers }) => {
    const { origin } = headers;
    const cors = origin === undefined ? {} : { 'Access-Control-Allow-Origin': origin };
    return answer.send(200, { ...json, ...cors }, `${JSON.stringify(listModels(parts))}\n`);
  });
  const page = get(({ answer }) => {
    const title = '<!doctype html><title>demo model server</title>';
    const text =
      '<h1>demo model server</h1><p>A stand-in for llama-swap. See <a href="/running">/running</a>.</p>';
    return answer.send(200, { 'Content-Type': 'text/html; charset=utf-8' }, `${title}${text}\n`);
  });
  return new Map([
    ['/health', ok],
    ['/wol-health', ok],
    ['/', get((exchange) => redirect(exchange, 302, '/ui'))],
    ['/ui', page],
    ['/ui/', page],
    ['/ui/models', page],
    ['/upstream', get((exchange) => redirect(exchange, 302, '/ui/models'))],
    ['/v1/models', models],
    ['/models', models],
    ['/running', get((exchange) => sendJson(exchange, listRunning(catalogue, residency)))],
    [
      '/unload',
      get(({ answer }) => {
        residency.unload();
        return answer.send(200, plainText, 'OK');
      }),
    ],
    [
      '/api/models/unload',
      {
        methods: ['POST'],
        run: (exchange) => {
          residency.unload();
          return sendJson(exchange, { msg: 'ok' });
        },
      },
    ],
    ['/api/profiles', get((exchange) => sendJson(exchange, profiles.listing()))],
    ['/api/profiles/active', { methods: ['PUT'], run: (exchange) => profiles.activate(exchange) }],
    ['/api/events', get(({ answer }) => events.listen(answer))],
    [
      '/api/version',
      get((exchange) =>
        sendJson(exchange, { version: 'demo', commit: 'demo', build_date: 'demo' }),
      ),
    ],
  ]);
}

/** `POST /api/models/unload/<model>`; ids may contain slashes. */
export async function unloadOne(exchange: Exchange, parts: ControlParts): Promise<void> {
  const target = parts.catalogue.findInPath(exchange.path.slice('/api/models/unload'.length));
  if (target?.rest !== '' || target.model.peerId !== undefined) {
    await sendError(exchange.answer, exchange.headers, 404, 'model not found');
    return;
  }
  parts.residency.unload(target.model.id);
  await exchange.answer.send(200, plainText, 'OK');
}

/** Answers every OPTIONS request alike, whatever the path. */
export async function sendCors({ answer, headers }: Exchange): Promise<void> {
  const requested = headers['access-control-request-headers'];
  await answer.send(
    204,
    {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Allow-Methods': 'GET, POST, PUT, PATCH, DELETE, OPTIONS',
      'Access-Control-Allow-Headers':
        requested?.replace(/[^\w\-, ]/g, '') ??
        'Content-Type, Authorization, Accept, X-Requested-With',
      'Access-Control-Max-Age': '86400',
    },
    '',
  );
}

/** Answers a known path asked with the wrong method. */
export function methodNotAllowed({ answer }: Exchange, methods: readonly string[]): Promise<void> {
  return sendPlain(answer, 405, 'Method Not Allowed', { Allow: methods.join(', ') });
}
