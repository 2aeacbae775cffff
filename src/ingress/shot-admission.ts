import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { AdmittedShot } from '../gateway/shot-facts.ts';
import { webhookOf } from '../gateway/webhook-request.ts';
import type { ModelCatalogue } from '../ports/model-server.ts';
import { accessFor } from './access-rules.ts';
import { fault } from './film-request.ts';
import type { AskedShot } from './film-request.ts';
import type { Identity } from './identity.ts';
import { plainTarget } from './request-form.ts';
import { COMFY_MODEL, matchRoute, upstreamCandidates } from './route-table.ts';
import type { RouteMatch } from './route-table.ts';
import { credentialHeaders } from './shown-key.ts';
import { deadlinesOf } from './request-terms.ts';
import type { HeaderValues } from './request-terms.ts';
import { headersUpstream, ownHeadersUpstream } from './upstream-headers.ts';
import type { HeaderRules } from './upstream-headers.ts';

/** What admitting shots needs. */
export interface ShotAdmission {
  readonly catalogue: ModelCatalogue;
  readonly headerRules: HeaderRules;
  /** Whether a model needs no GPU. */
  readonly needsNoGpu: (model: string) => boolean;
  /** What is wrong with the address of a webhook, without repeating it. */
  readonly webhookFault: (address: string) => string | undefined;
}

type GpuMatch = Extract<RouteMatch, { needsGpu: true }>;

/** Of a film that does not belong to one moment: each of its shots has a start and an end of its own. */
const OF_A_SHOT = ['X-Berth-Start-Deadline', 'Cancel-After'] as const;
/** Of the request that makes a film, what goes upstream with each shot. */
const INHERITED = new Set([...credentialHeaders, 'x-forwarded-for', 'user-agent']);
/** What a shot's body is in, and how long it is, is Berth's to say. */
const OURS = new Set(['content-encoding', 'content-length', 'transfer-encoding']);
const PRIORITY_HEADERS = ['x-llamaswap-priority', 'x-priority', 'x-berth-intent'] as const;
const DEFAULT_INTENT = 'film-shot';

/**
 * Finds out of a shot what the admission of a request finds out, at the place `index`:
 *
 * 1. Its path is read as any request's, and opens nothing that this key may not ask for.
 * 2. It needs the GPU, and the model server knows its model.
 * 3. Its headers: its own, before the credentials of the film's request.
 * 4. Its priority: its own headers', the film's, else that of a film shot.
 * 5. Its deadlines, and who is told of its end, by its own headers.
 *
 * Throws GatewayError `bad_request` or `forbidden` that names the field.
 */
export async function admitShot(
  shot: AskedShot,
  index: number,
  request: IncomingMessage,
  identity: Identity,
  admission: ShotAdmission,
): Promise<Omit<AdmittedShot, 'body'>> {
  const at = `shots[${index}]`;
  // 1
  const target = targetOf(shot.path, `${at}.path`);
  const path = target.split('?', 1)[0] ?? '/';
  if (accessFor(shot.method, target) === 'admin' && !identity.isAdmin)
    throw new GatewayError(
      'forbidden',
      `${at}.path: this route needs the key of an administrator`,
      {
        param: `${at}.path`,
      },
    );
  // 2
  const match = matchRoute(shot.method, path);
  if (!match.needsGpu || match.modelSource === 'none')
    throw fault(`${at}.path`, `${shot.method} ${path} is no request that a GPU works on`);
  const model = await modelOf(shot, match, target, admission.catalogue);
  const modelField = match.modelSource === 'body' ? `${at}.body.model` : `${at}.path`;
  if (model === undefined) throw fault(modelField, 'names no model');
  if ((await admission.catalogue.lookUp(model)) === 'unknown')
    throw fault(modelField, `the model server knows no model ${JSON.stringify(model)}`);
  if (admission.needsNoGpu(model)) throw fault(modelField, 'that model needs no GPU');
  // 3
  const refused = Object.keys(shot.headers).find((name) => OURS.has(name.toLowerCase()));
  if (refused !== undefined) throw fault(`${at}.headers.${refused}`, 'cannot be chosen');
  const own = ownValues(shot);
  return {
    head: { method: shot.method, target, headers: headersOf(shot, request, admission.headerRules) },
    route: match.route,
    kind: match.kind,
    model,
    isStream: shot.body?.stream === true,
    member: identity.member,
    tier: identity.tier,
    take: shot.take,
    // 4
    priority: priorityOf(own, request, identity),
    // 5
    deadlines: named(`${at}.headers`, () => deadlinesOf(own)),
    webhook: named(`${at}.headers`, () =>
      webhookOf(own('x-berth-webhook'), admission.webhookFault),
    ),
  };
}

function targetOf(path: string, field: string): string {
  try {
    if (!path.startsWith('/')) throw fault(field, 'a path begins with a slash');
    return plainTarget(path);
  } catch (error) {
    throw error instanceof GatewayError ? fault(field, error.message) : error;
  }
}

async function modelOf(
  shot: AskedShot,
  match: GpuMatch,
  target: string,
  catalogue: ModelCatalogue,
): Promise<string | undefined> {
  if (match.modelSource === 'comfyui') return COMFY_MODEL;
  if (match.modelSource === 'body')
    return typeof shot.body?.model === 'string' ? shot.body.model : undefined;
  const [path = '', query = ''] = target.split('?', 2);
  if (match.modelSource === 'query') return new URLSearchParams(query).get('model') ?? undefined;
  const candidates = upstreamCandidates(path);
  for (const candidate of candidates) {
    if ((await catalogue.lookUp(candidate)) === 'known') return candidate;
  }
  return candidates.at(-1);
}

function headersOf(shot: AskedShot, request: IncomingMessage, rules: HeaderRules): string[] {
  const own = Object.entries(shot.headers).flat();
  const names = new Set(Object.keys(shot.headers).map((name) => name.toLowerCase()));
  const isJson = shot.body !== undefined && shot.body !== null;
  const flat = headersUpstream(request, rules);
  const inherited = flat.flatMap((name, at) =>
    at % 2 === 0 && INHERITED.has(name.toLowerCase()) && !names.has(name.toLowerCase())
      ? [name, flat[at + 1] ?? '']
      : [],
  );
  return [
    ...(isJson && !names.has('content-type') ? ['Content-Type', 'application/json'] : []),
    ...ownHeadersUpstream(own, rules),
    ...inherited,
  ];
}

/** A shot's own headers by lower-case name; those that differ in case alone are one that came twice. */
function ownValues(shot: AskedShot): HeaderValues {
  const values = new Map<string, string[]>();
  for (const [name, value] of Object.entries(shot.headers))
    values.set(name.toLowerCase(), [...(values.get(name.toLowerCase()) ?? []), value]);
  return (name) => values.get(name) ?? [];
}

/** Says where the header stands that `read` finds fault with. */
function named<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    throw fault(`${at}.${error.param ?? ''}`, error.message);
  }
}

/** Throws GatewayError `bad_request` for a header that says something of one job. */
export function refuseShotTerms(request: IncomingMessage): void {
  const found = OF_A_SHOT.find((name) => request.headersDistinct[name.toLowerCase()] !== undefined);
  if (found === undefined) return;
  throw new GatewayError('bad_request', `${found} belongs to a shot: it goes into its headers`, {
    param: found,
  });
}

function priorityOf(
  own: HeaderValues,
  request: IncomingMessage,
  identity: Identity,
): AdmittedShot['priority'] {
  const isOwn = PRIORITY_HEADERS.some((name) => own(name).length > 0);
  const all = (name: string): readonly string[] =>
    isOwn ? own(name) : (request.headersDistinct[name] ?? []);
  const [llamaSwapPriority, xPriority, intent] = PRIORITY_HEADERS.map(all);
  const isSilent = PRIORITY_HEADERS.every((name) => all(name).length === 0);
  return {
    llamaSwapPriority: llamaSwapPriority ?? [],
    xPriority: xPriority ?? [],
    intent: isSilent ? [DEFAULT_INTENT] : (intent ?? []),
    keyDefault: identity.defaultPriority,
    ceiling: identity.maxPriority,
  };
}
