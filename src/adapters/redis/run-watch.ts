import { RunAborted } from '../../ports/job-queue.ts';
import type { GpuOwner } from './gpu-owner.ts';
import type { PoolKeys } from './keys.ts';
import type { RedisClock } from './redis-clock.ts';
import type { Scripts } from './scripts.ts';

/** How often a running job's cancel flag and its client's ingress are looked at, in ms. */
const WATCH_MS = 250;

/** What watching needs. */
export interface RunWatchSurroundings {
  scripts: Scripts;
  keys: PoolKeys;
  clock: RedisClock;
  owner: GpuOwner;
  onFenced: () => void;
}

/**
 * Aborts a run when it is cancelled, its client has gone, or another worker owns the GPU. A look without an answer
 * changes nothing. Ended by the function returned.
 */
export function watchRun(
  jobId: string,
  abort: AbortController,
  around: RunWatchSurroundings,
): () => void {
  const timer = setInterval(() => void look(jobId, abort, around), WATCH_MS);
  return () => clearInterval(timer);
}

async function look(
  id: string,
  abort: AbortController,
  { scripts, keys, clock, owner, onFenced }: RunWatchSurroundings,
): Promise<void> {
  const sentAt = performance.now();
  const { pool, queue } = keys;
  const own = JSON.stringify({
    ...{ pool, queue, id },
    fence: owner.fence,
    expectedNow: clock.estimate(),
  });
  const reply = (await scripts.run('watch', pool, own).catch(() => undefined)) as
    [isOwner: number, cancelCode: string, isAbandoned: number, now: string] | undefined;
  if (reply === undefined) return;
  const [isOwner, cancelCode, isAbandoned, now] = reply;
  clock.observe(Number(now), sentAt);
  if (isOwner === 0) {
    abort.abort(new RunAborted('fenced'));
    onFenced();
  } else if (cancelCode !== '' || isAbandoned === 1) {
    abort.abort(new RunAborted(cancelCode === 'cancelled' ? 'cancelled' : 'client_closed'));
  }
}
