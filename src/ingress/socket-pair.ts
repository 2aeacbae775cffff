import type { Duplex } from 'node:stream';

/** How long one direction may go on when the other has ended, in ms. */
const LINGER_MS = 30_000;
const END_MS = 1000;

/** Two connections made one. */
export interface SocketPair {
  /** Ends both after what is under way; cuts them a second later. */
  end(): void;
  /** Cuts both at once. */
  destroy(): void;
}

/**
 * Passes bytes between two connections, each way with the other side's backpressure, until both have closed:
 *
 * - open: both directions pass bytes.
 * - half closed: one side has ended; its end is passed on, and the other direction goes on for at most 30 s.
 * - closed: both directions have ended, or one side broke: what is left of either is cut.
 *
 * It owns both connections. `onClose` is called once.
 */
export function joinSockets(one: Duplex, other: Duplex, onClose: () => void): SocketPair {
  let open = 2;
  let linger: NodeJS.Timeout | undefined;
  const destroy = (): void => {
    one.destroy();
    other.destroy();
  };
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    // The close that follows an error says the same.
    from.on('error', () => undefined);
    from.on('end', () => (linger ??= setTimeout(destroy, LINGER_MS)));
    from.on('close', () => {
      open -= 1;
      // What it sent before is still on its way; a side that did not end cleanly has nothing more to wait for.
      if (from.readableEnded) to.end();
      else to.destroy();
      if (to.writableEnded && to.readableEnded && to.writableFinished) to.destroy();
      if (open > 0) return;
      clearTimeout(linger);
      onClose();
    });
    if (from.readableEnded) to.end();
    else from.pipe(to);
  }
  const end = (): void => {
    clearTimeout(linger);
    linger = setTimeout(destroy, END_MS);
    one.end();
    other.end();
  };
  return { destroy, end };
}
