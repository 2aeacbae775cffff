import type { IncomingHttpHeaders } from 'node:http';

const openPaths = ['/health', '/wol-health', '/', '/favicon.ico'];

/** Whether the request may pass: nothing is asked for without keys, on OPTIONS, and on the health paths. */
export function isAuthorized(
  keys: readonly string[],
  method: string,
  path: string,
  headers: IncomingHttpHeaders,
): boolean {
  if (keys.length === 0 || method === 'OPTIONS' || openPaths.includes(path)) return true;
  const shown = shownKey(headers);
  return shown !== undefined && keys.includes(shown);
}

/** The password of Basic, else the token of Bearer, else x-api-key. */
function shownKey(headers: IncomingHttpHeaders): string | undefined {
  const [scheme = '', value = ''] = (headers.authorization ?? '').split(' ');
  if (scheme.toLowerCase() === 'basic') {
    return Buffer.from(value, 'base64').toString('utf8').split(':').slice(1).join(':');
  }
  if (scheme.toLowerCase() === 'bearer') return value;
  return headers['x-api-key']?.toString();
}
