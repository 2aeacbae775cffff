import type { IncomingMessage, Server } from 'node:http';
import { Socket } from 'node:net';
import { GatewayError } from '../errors.ts';
import type { Gatekeeper } from './gatekeeper.ts';
import { requestTarget } from './request-form.ts';
import type { UpgradeRoute } from './routes/upgrade.ts';
import { asksForSocket, ignoreUpgrade } from './upgrade-request.ts';

/** After so long in silence the kernel asks whether a client still lives, in ms. */
const PROBE_MS = 30_000;

/**
 * Serves the WebSockets of a server. Every other upgrade is ignored, as HTTP allows, and a socket that is malformed or
 * that the gatekeeper does not let in is served as the plain request it would be: that one gets the same refusal.
 */
export function serveUpgrades(server: Server, gatekeeper: Gatekeeper, route: UpgradeRoute): void {
  server.on('upgrade', (request, socket, first) => {
    const target = admittedTarget(request, gatekeeper);
    if (target === undefined) {
      ignoreUpgrade(server, request, socket, first);
      return;
    }
    request.url = target;
    if (socket instanceof Socket) socket.setTimeout(0).setNoDelay().setKeepAlive(true, PROBE_MS);
    // At once: a client that has nothing more to say would be at its end before anybody read this.
    if (first.length > 0) socket.unshift(first);
    void route.handle(request, socket);
  });
}

/** The target of a socket that may be opened. */
function admittedTarget(request: IncomingMessage, gatekeeper: Gatekeeper): string | undefined {
  const url = request.url ?? '/';
  try {
    const target = requestTarget(request);
    if (!asksForSocket(request, target)) return undefined;
    request.url = target;
    gatekeeper.admit(request);
    return target;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return undefined;
  } finally {
    request.url = url;
  }
}
