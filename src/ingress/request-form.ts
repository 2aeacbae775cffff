import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import { pathReadings } from './path-readings.ts';

/** Headers that decide who asks and of whom: sent twice, whoever stands in between may have read the other one. */
const SINGLE = ['host', 'authorization'];
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;
/** Characters that mean themselves, coded or not (RFC 3986, 2.3); dots are looked at before. */
const CODED_UNRESERVED = /%(?:2d|3[0-9]|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/gi;
const CODED_CONTROL = /%(?:[01][0-9a-f]|7f)/i;
const DOT = /\/(?:\.|%2e)(?:[/;]|$)/i;
const CLIMBS = /\/\.\.(?:\/|$)/;
/** Below these the rest of the path is the model's own server's, and stays as it was written. */
const OPAQUE = /^\/(?:upstream|comfyui)(?=\/)/i;

/**
 * Refuses what others may read in another way: any HTTP but 1.0 and 1.1, and a Host or Authorization that came twice.
 * Throws GatewayError `bad_request`; where the next request begins is not known then.
 */
export function refuseAmbiguous(request: IncomingMessage): void {
  if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0')
    throw bad('only HTTP/1.0 and HTTP/1.1 are spoken here');
  for (const name of SINGLE) {
    if ((request.headersDistinct[name]?.length ?? 0) > 1)
      throw bad(`the header ${name} came twice`);
  }
}

/**
 * The target of a request in the one form that all of Berth reads alike, origin-form with its query as it came:
 *
 * 1. An absolute target must name the host of the Host header; what is left of it is its path.
 * 2. No path may climb, however it is coded, or hold what others take for a slash or an end.
 * 3. Doubled slashes name nothing here (others take what follows for a host); the path that was meant is told.
 * 4. Letters and digits that were coded for no reason are decoded, so that every spelling of a route is that route.
 *
 * Throws GatewayError `bad_request` (1, 2), `job_not_found` (3).
 */
export function requestTarget(request: IncomingMessage): string {
  // 1
  return plainTarget(originForm(request.url ?? '/', request.headers.host ?? ''));
}

/** Steps 2 to 4 of `requestTarget`, for a target that names no host. */
export function plainTarget(target: string): string {
  const [path, query] = splitOnce(target);
  // 2
  if (!path.startsWith('/') || /[\\#\p{Cc}]|%5c/iu.test(path) || CODED_CONTROL.test(path))
    throw bad('the request target is not a path');
  if (DOT.test(path) || pathReadings(path).some((reading) => CLIMBS.test(reading)))
    throw bad('the path has dot segments');
  // 3
  if (path.includes('//')) {
    const meant = path.replace(/\/{2,}/g, '/');
    throw new GatewayError('job_not_found', `there is nothing at this path; ${meant} was meant`);
  }
  // 4
  const plain = path.replace(CODED_UNRESERVED, (code) => decodeURIComponent(code));
  const opaque = OPAQUE.exec(plain)?.[0];
  const kept = opaque === undefined ? plain : opaque + path.slice(path.indexOf('/', 1));
  return query === undefined ? kept : `${kept}?${query}`;
}

function originForm(target: string, host: string): string {
  const [, authority, rest = ''] = ABSOLUTE.exec(target) ?? [];
  if (authority === undefined) return target;
  if (authority.toLowerCase() !== host.toLowerCase())
    throw bad('the request target names another host than the Host header');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function splitOnce(target: string): [path: string, query: string | undefined] {
  const at = target.indexOf('?');
  return at < 0 ? [target, undefined] : [target.slice(0, at), target.slice(at + 1)];
}

const bad = (message: string): GatewayError => new GatewayError('bad_request', message);
