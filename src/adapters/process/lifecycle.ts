import { type StopSignal, onStopSignals } from './stop-signals.ts';

/**
 * How one of Berth's processes ends.
 *
 *     running  -- SIGTERM, SIGINT, SIGHUP or the supervisor is gone -->  stopping
 *     stopping -- `stop` resolved                                   -->  exit 0
 *     stopping -- `stop` rejected                                   -->  exit 1
 *     stopping -- a signal more than 2 s after the first            -->  exit 1, at once
 *     stopping -- grace + 0.5 s passed                              -->  exit 1, at once
 *     any      -- uncaught exception or unhandled rejection         -->  exit 1, at once
 */

const HARD_EXIT_AFTER_GRACE_MS = 500;

/** What a process tells the supervisor over its IPC channel. */
export type ProcessMessage =
  /** It accepts connections on this TCP port. */
  | { readonly type: 'listening'; readonly port: number }
  /** It can do its work; of the ingress: its readyz would be green. */
  | { readonly type: 'ready' };

/** Why a process stops; `supervisor_gone` when its IPC channel closed. */
export type StopReason = StopSignal | 'supervisor_gone';

/** The part of a logger that the lifecycle uses. */
export interface LifecycleLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** What a process hands over to be stopped well. */
export interface SelfSupervision {
  /** Time `stop` may take, in milliseconds (SHUTDOWN_GRACE_SECONDS); the process ends 0.5 s after it in any case. */
  readonly graceMs: number;
  /** Drains and closes everything. Called once at most; resolving ends the process with 0, rejecting with 1. */
  readonly stop: (reason: StopReason) => Promise<void>;
  readonly log: LifecycleLog;
}

/**
 * Installs the handlers that end this process; call it once, before anything that must be stopped is
 * started. A supervisor that was killed leaves its children without an IPC channel: they stop as if
 * they had been asked to.
 */
export function superviseSelf({ graceMs, stop, log }: SelfSupervision): void {
  let isStopping = false;

  const beginStop = (reason: StopReason): void => {
    if (isStopping) return;
    isStopping = true;
    log.info({ reason }, 'process.stopping');
    setTimeout(() => {
      log.error({ reason, graceMs }, 'process.grace_over');
      process.exit(1);
    }, graceMs + HARD_EXIT_AFTER_GRACE_MS);
    // A `stop` that throws before its first await must end up in the same place as one that rejects.
    void Promise.resolve()
      .then(() => stop(reason))
      .then(
        () => process.exit(0),
        (error: unknown) => {
          log.error({ err: error, reason }, 'process.stop_failed');
          process.exit(1);
        },
      );
  };

  onStopSignals({ stop: beginStop, force: () => process.exit(1) });
  process.on('disconnect', () => beginStop('supervisor_gone'));
  // The channel may have closed while this process was still loading its modules.
  if (process.send !== undefined && !process.connected) beginStop('supervisor_gone');

  process.on('uncaughtException', (error) => {
    log.error({ err: error }, 'process.uncaught_exception');
    process.exit(1);
  });
  process.on('unhandledRejection', (error) => {
    log.error({ err: error }, 'process.unhandled_rejection');
    process.exit(1);
  });
  // With the supervisor gone, its end of our stderr is gone too: a write must not cut the drain short.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}

/** Tells the supervisor; does nothing in a process that was started alone. Never throws. */
export function announce(message: ProcessMessage): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
