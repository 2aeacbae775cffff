import type { IncomingMessage } from 'node:http';

/** How long the body of a refused request is read on, in ms. */
const DRAIN_MS = 5000;

/**
 * Reads the rest of a refused body for a while: closing at once would reset the connection, and many clients would
 * never see the answer.
 */
export function drain(request: IncomingMessage): void {
  if (request.complete) return;
  const timer = setTimeout(() => request.destroy(), DRAIN_MS);
  request.on('close', () => clearTimeout(timer));
  request.on('end', () => clearTimeout(timer));
  request.resume();
}
