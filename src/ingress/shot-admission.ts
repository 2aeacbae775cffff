import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import { requestHeaders } from '../gateway/headers.ts';
import type { AdmittedShot } from '../gateway/shot-facts.ts';
import type { ModelCatalogue } from '../ports/model-server.ts';
import { accessFor } from './access-rules.ts';
import { fault } from './film-request.ts';
import type { AskedShot } from './film-request.ts';
import type { Identity } from './identity.ts';
import { plainTarget } from './request-form.ts';
import { COMFY_MODEL, matchRoute, upstreamCandidates } from './route-table.ts';
import type { RouteMatch } from './route-table.ts';
import { credentialHeaders } from './shown-key.ts';
import { headersUpstream } from './upstream-headers.ts';
import type { HeaderRules } from './upstream-headers.ts';

/** What admitting shots needs. */
export interface ShotAdmission {
  readonly catalogue: ModelCatalogue;
  readonly headerRules: HeaderRules;
  /** Whether a model needs no GPU. */
  readonly needsNoGpu: (model: string) => boolean;
}

type GpuMatch = Extract<RouteMatch, { needsGpu: true }>;

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
  const own = Object.entries(shot.headers);
  const refused = own.find(([name]) => OURS.has(name.toLowerCase()));
  if (refused !== undefined) throw fault(`${at}.headers.${refused[0]}`, 'cannot be chosen');
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
    priority: priorityOf(shot, request, identity),
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
    ...requestHeaders(own, rules.droppedHeaders),
    ...inherited,
  ];
}

function priorityOf(
  shot: AskedShot,
  request: IncomingMessage,
  identity: Identity,
): AdmittedShot['priority'] {
  const own = new Map(
    Object.entries(shot.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const isOwn = PRIORITY_HEADERS.some((name) => own.has(name));
  const all = (name: string): string[] => {
    if (!isOwn) return request.headersDistinct[name] ?? [];
    const value = own.get(name);
    return value === undefined ? [] : [value];
  };
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
