import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * After the end of what a client sends, in ms: when it is first asked whether it still reads, when again (the first
 * write only makes its machine say no, the second one hears it), and how often from then on.
 */
const PROBES_MS = [200, 300] as const;
const PROBE_EVERY_MS = 5000;
/** HTTP/1.0 knows no interim answer: a client that cannot be asked has so long, in ms, to get its answer. */
const UNASKED_MS = 700;
/** A half-closed client whose begun answer is silent for so long, in ms, is taken for gone. */
const SILENT_MS = 30_000;

const probes = new WeakMap<ServerResponse, () => void>();

/** From now on this client is asked with `probe`: a write that its protocol allows in the middle of an answer. */
export function probeWith(response: ServerResponse, probe: () => void): void {
  probes.set(response, probe);
}

/**
 * Tells a client that has closed its sending side and still reads (it gets its answer) from one that has gone: both
 * look the same until something is written. Before the answer's head that is an interim answer (102), which has no
 * meaning; a client that has gone refuses it, and the response closes. Needs a server that allows half-open
 * connections.
 */
export function watchHalfClose(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  let timer: NodeJS.Timeout | undefined;
  let endedAt = 0;
  let sent = 0;
  let sentAt = 0;

  const ask = (): void => {
    const now = performance.now();
    if (socket.bytesWritten !== sent) {
      sent = socket.bytesWritten;
      sentAt = now;
    }
    if (!response.headersSent) {
      if (request.httpVersion === '1.1') response.writeProcessing();
      else if (now - endedAt > UNASKED_MS) response.destroy();
    } else if (probes.has(response)) probes.get(response)?.();
    else if (now - sentAt > SILENT_MS) response.destroy();
  };
  const onEnd = (): void => {
    endedAt = performance.now();
    sentAt = endedAt;
    let round = 0;
    const schedule = (): void => {
      const since = performance.now() - endedAt;
      const at = PROBES_MS[round] ?? (round === PROBES_MS.length ? UNASKED_MS + 50 : undefined);
      timer = setTimeout(
        () => {
          round += 1;
          ask();
          if (!response.destroyed && !response.writableEnded) schedule();
        },
        at === undefined ? PROBE_EVERY_MS : Math.max(0, at - since),
      );
    };
    schedule();
  };
  socket.once('end', onEnd);
  response.once('close', () => {
    clearTimeout(timer);
    socket.off('end', onEnd);
  });
}
