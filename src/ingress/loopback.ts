import type { IncomingMessage } from 'node:http';

const FORWARDING = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'via',
];
const LOCAL_HOST = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d{1,5})?$/i;

/**
 * Whether a request comes from this machine and was meant for it: a loopback peer, no sign of a proxy in between, and
 * a Host that is a local name (a page of another origin, rebinding its name to 127.0.0.1, has its own).
 */
export function isLoopback(request: IncomingMessage): boolean {
  const peer = request.socket.remoteAddress ?? '';
  const isLocalPeer = peer === '::1' || /^(?:::ffff:)?127\./.test(peer);
  const isForwarded = FORWARDING.some((name) => request.headers[name] !== undefined);
  return isLocalPeer && !isForwarded && LOCAL_HOST.test(request.headers.host ?? '');
}
