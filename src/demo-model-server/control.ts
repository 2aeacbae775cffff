import type { Activity } from './activity.ts';
import { activityRoutes } from './activity-routes.ts';
import type { Captures } from './captures.ts';
import type { Catalogue } from './catalogue.ts';
import { ControlTable, get, sendJson, type ControlEntry } from './control-route.ts';
import { sendError, sendPlain } from './errors.ts';
import type { EventFeed } from './events.ts';
import type { Exchange } from './exchange.ts';
import type { Inflight } from './inflight.ts';
import { listModels, listRunning } from './listings.ts';
import type { LogBook } from './log-book.ts';
import { logRoutes } from './log-routes.ts';
import type { Machine } from './machine.ts';
import { machineRoutes } from './machine-routes.ts';
import type { Profiles } from './profiles.ts';
import type { Residency } from './residency.ts';
import { pageRoutes } from './web-page.ts';

/** What the control routes report on and act upon. */
export interface ControlParts {
  readonly catalogue: Catalogue;
  readonly residency: Residency;
  readonly profiles: Profiles;
  readonly events: EventFeed;
  readonly inflight: Inflight;
  readonly logBook: LogBook;
  readonly activity: Activity;
  readonly captures: Captures;
  readonly machine: Machine;
}

const plainText = { 'Content-Type': 'text/plain; charset=utf-8' };

/** Every path that needs no GPU. */
export function controlTable(parts: ControlParts): ControlTable {
  return new ControlTable([
    ...pageRoutes(),
    ...modelRoutes(parts),
    ...unloadRoutes(parts),
    ...logRoutes(parts.logBook, parts.catalogue),
    ...activityRoutes(parts.activity, parts.captures),
    ...machineRoutes(parts.machine),
    ['/api/inflight/*', { methods: ['POST'], run: (...asked) => cancel(parts.inflight, ...asked) }],
  ]);
}

function modelRoutes(parts: ControlParts): ControlEntry[] {
  const { catalogue, residency, profiles, events } = parts;
  const ok = get(({ answer }) => answer.send(200, plainText, 'OK'));
  const models = get(({ answer, headers }) => {
    const { origin } = headers;
    const cors = origin === undefined ? {} : { 'Access-Control-Allow-Origin': origin };
    const json = { 'Content-Type': 'application/json' };
    return answer.send(200, { ...json, ...cors }, `${JSON.stringify(listModels(parts))}\n`);
  });
  return [
    ['/health', ok],
    ['/wol-health', ok],
    ['/v1/models', models],
    ['/models', models],
    ['/running', get((exchange) => sendJson(exchange, listRunning(catalogue, residency)))],
    ['/api/profiles', get((exchange) => sendJson(exchange, profiles.listing()))],
    ['/api/profiles/active', { methods: ['PUT'], run: (exchange) => profiles.activate(exchange) }],
    ['/api/events', get(({ answer }) => events.listen(answer))],
  ];
}

function unloadRoutes({ catalogue, residency }: ControlParts): ControlEntry[] {
  const all = (exchange: Exchange): Promise<void> => {
    residency.unload();
    return sendJson(exchange, { msg: 'ok' });
  };
  const one = async ({ answer, headers }: Exchange, name: string): Promise<void> => {
    const model = catalogue.find(name);
    if (model === undefined || model.peerId !== undefined) {
      await sendError(answer, headers, 404, 'model not found');
      return;
    }
    residency.unload(model.id);
    await answer.send(200, plainText, 'OK');
  };
  const byGet = get(({ answer }) => {
    residency.unload();
    return answer.send(200, plainText, 'OK');
  });
  return [
    ['/unload', byGet],
    ['/api/models/unload', { methods: ['POST'], run: all }],
    ['/api/models/unload/*', { methods: ['POST'], run: one }],
  ];
}

/** `POST /api/inflight/<id>/cancel` ends that request as a client that leaves would. */
async function cancel(inflight: Inflight, exchange: Exchange, rest: string): Promise<void> {
  const id = /^([^/]+)\/cancel$/.exec(rest)?.[1];
  const { answer, headers } = exchange;
  if (id === undefined) await sendPlain(answer, 404, '404 page not found');
  else if (inflight.cancel(id)) await sendJson(exchange, { msg: 'ok' });
  else await sendError(answer, headers, 404, 'inflight request not found');
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
