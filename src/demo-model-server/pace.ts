import { setImmediate as yieldOnce, setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds on a clock that never steps back and that all processes of this machine share. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/**
 * Waits until `monotonicMs()` has reached `dueMs`, or gives way to other work once when that moment has passed.
 * Rejects with the signal's reason as soon as the signal aborts.
 */
export async function waitUntil(dueMs: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  try {
    const ms = dueMs - monotonicMs();
    await (ms > 0 ? sleep(ms, undefined, { signal }) : yieldOnce(undefined, { signal }));
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
}

/** Waits `ms` milliseconds; rejects with the signal's reason as soon as the signal aborts. */
export function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  return waitUntil(monotonicMs() + ms, signal);
}

/** Waits for `fact`; rejects with the signal's reason as soon as the signal aborts. */
export async function waitForFact<T>(fact: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let leave = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason as Error);
    signal.addEventListener('abort', leave, { once: true });
  });
  try {
    return await Promise.race([fact, aborted]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/** Never resolves; rejects with the signal's reason when the signal aborts. */
export function waitForAbort(signal: AbortSignal): Promise<never> {
  return waitForFact(new Promise<never>(() => undefined), signal);
}
