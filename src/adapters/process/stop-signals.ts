/** Signals this close together are one wish to stop (milliseconds). */
const ONE_WISH_MS = 2000;

/** The signals that ask a process to end. SIGHUP is what a closed terminal sends. */
export type StopSignal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';

/**
 * Calls `stop` at the first of these signals and `force` at each one more than 2 s after it; those in
 * between count as the first, whatever their names: a terminal sends SIGINT to the whole group, npm
 * passes it on, and the supervisor sends SIGTERM, all for one Ctrl-C.
 */
export function onStopSignals(handlers: {
  readonly stop: (signal: StopSignal) => void;
  readonly force: () => void;
}): void {
  let askedAtMs: number | undefined;
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const nowMs = performance.now();
      if (askedAtMs === undefined) {
        askedAtMs = nowMs;
        handlers.stop(signal);
      } else if (nowMs - askedAtMs > ONE_WISH_MS) {
        handlers.force();
      }
    });
  }
}
