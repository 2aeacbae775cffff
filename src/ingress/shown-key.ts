import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';

/** Lower-case names of the headers a key may come in. */
export const credentialHeaders: readonly string[] = ['authorization', 'x-api-key'];

/**
 * The bytes of the key that a request shows, or null for none: the password of Basic (with any user name), the token
 * of Bearer, or else `x-api-key`, as llama-swap reads them. Throws GatewayError `bad_request` when one of these
 * headers came twice: whoever stands in between may have read the other one.
 */
export function shownKey(request: IncomingMessage): Buffer | null {
  const [authorization, apiKey] = credentialHeaders.map((name) => only(request, name));
  const fromAuthorization = authorization === undefined ? null : inAuthorization(authorization);
  return fromAuthorization ?? bytesOf(apiKey);
}

function only(request: IncomingMessage, name: string): string | undefined {
  const values = request.headersDistinct[name] ?? [];
  if (values.length > 1) throw new GatewayError('bad_request', `the header ${name} came twice`);
  return values[0];
}

function inAuthorization(value: string): Buffer | null {
  const [, scheme = '', credential = ''] = /^\s*([a-z]+)\s+(\S+)\s*$/i.exec(value) ?? [];
  if (scheme.toLowerCase() === 'bearer') return bytesOf(credential);
  if (scheme.toLowerCase() !== 'basic') return null;
  const pair = Buffer.from(credential, 'base64');
  const colon = pair.indexOf(':');
  return colon < 0 || colon === pair.length - 1 ? null : pair.subarray(colon + 1);
}

/** Header values come as Latin-1, one character a byte; empty ones show nothing. */
function bytesOf(value: string | undefined): Buffer | null {
  return value === undefined || value === '' ? null : Buffer.from(value, 'latin1');
}
