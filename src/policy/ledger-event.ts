import type { MemberId, WaitingJob } from './job.ts';
import type { Ledger } from './ledger.ts';

/**
 * One thing that happened to a job, in the order in which it happened: the queue's own record of itself. The
 * ledger is what they add up to, so that any process that has read them all decides alike.
 *
 * `arrive`: a job waits, and may run. `wake`: its backoff is over. `remove`: it waits no longer, and never ran.
 * `dispatch`: it has the GPU. `end`: its run is over. `back`: its run is over and it waits again.
 */
export type LedgerEvent = { readonly atMs: number; readonly job: WaitingJob } & (
  | { readonly kind: 'arrive' | 'wake' | 'remove' }
  | { readonly kind: 'dispatch'; readonly passedOver: readonly MemberId[] }
  | { readonly kind: 'end'; readonly usedMs: number }
  /** May run again from `eligibleAtMs`, unix milliseconds. */
  | { readonly kind: 'back'; readonly usedMs: number; readonly eligibleAtMs: number }
);

/**
 * Lets the ledger know. Events that the ledger knows already change nothing; one that does not fit, because what
 * came before it was lost, is taken for true all the same: the queue is right about itself.
 */
export function applyEvent(ledger: Ledger, event: LedgerEvent): void {
  const { job, atMs } = event;
  switch (event.kind) {
    case 'arrive':
      ledger.arrive(job);
      ledger.wakeJob(job.id, atMs);
      return;
    case 'wake':
      ledger.wakeJob(job.id, atMs);
      return;
    case 'remove':
      ledger.remove(job.id);
      return;
    case 'dispatch':
      dispatch(ledger, job, event.passedOver, atMs);
      return;
    case 'end':
      if (ledger.run?.job.id === job.id) ledger.end(atMs, event.usedMs);
      else ledger.remove(job.id);
      return;
    case 'back':
      if (ledger.run?.job.id === job.id) ledger.handBack(atMs, event.usedMs, event.eligibleAtMs);
      else ledger.arrive({ ...job, eligibleAtMs: event.eligibleAtMs });
  }
}

function dispatch(
  ledger: Ledger,
  job: WaitingJob,
  passedOver: readonly MemberId[],
  atMs: number,
): void {
  if (ledger.run?.job.id === job.id) return;
  if (ledger.run !== null) ledger.end(atMs, atMs - ledger.run.startedMs);
  ledger.arrive(job);
  ledger.wakeJob(job.id, atMs);
  ledger.dispatch({ band: job.band, job, passedOver }, atMs);
}
