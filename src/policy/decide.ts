import { pickNext, pickWithout, turnInBand, type Pick } from './dispatch.ts';
import { terms, weigh, type Term, type Weighing } from './effective-priority.ts';
import { holdUntil } from './hold.ts';
import type { WaitingJob } from './job.ts';
import type { Ledger } from './ledger.ts';

/** What to do with a free GPU. */
export type Decision =
  | { readonly kind: 'run'; readonly pick: Pick }
  /** A producer's next job is about to come and would go first: decide again then, and at any arrival. */
  | { readonly kind: 'hold'; readonly untilMs: number; readonly pick: Pick }
  /** Nothing may run before that time, unix milliseconds; null: until something arrives. */
  | { readonly kind: 'idle'; readonly untilMs: number | null };

/**
 * What a free GPU should do at this moment. Jobs whose backoff is over are let in first.
 *
 * @param residentModel null when it is not known
 */
export function decide(ledger: Ledger, residentModel: string | null, nowMs: number): Decision {
  ledger.wake(nowMs);
  return decideAsItStands(ledger, residentModel, nowMs);
}

/** The same for books that are only read: a job in backoff waits until the ledger is told that it woke. */
export function decideAsItStands(
  ledger: Ledger,
  residentModel: string | null,
  nowMs: number,
): Decision {
  const weighing = weigh(ledger.rules, residentModel);
  const pick = pickNext(ledger.bands.values(), weighing);
  if (pick === undefined) {
    const { nextWakeMs } = ledger;
    return { kind: 'idle', untilMs: Number.isFinite(nextWakeMs) ? nextWakeMs : null };
  }
  const untilMs = heldUntil(ledger, pick, weighing, nowMs);
  return untilMs === undefined ? { kind: 'run', pick } : { kind: 'hold', untilMs, pick };
}

/**
 * For each term the job that would go instead of the pick if that term did not count, where that is
 * another one: the job whose start the term delays by the pick's run. To be asked before the dispatch.
 */
export function displacedBy(
  ledger: Ledger,
  pick: Pick,
  residentModel: string | null,
): Partial<Record<Term, WaitingJob>> {
  const displaced: Partial<Record<Term, WaitingJob>> = {};
  const weighing = weigh(ledger.rules, residentModel);
  for (const term of terms) {
    const job = pickWithout(term, ledger.bands.values(), weighing);
    if (job !== undefined && job.id !== pick.job.id) displaced[term] = job;
  }
  return displaced;
}

/**
 * The head whose turn it would be in each band without the pick's lane: the best loser of each. To be asked
 * before the dispatch.
 */
export function bestLosers(
  ledger: Ledger,
  pick: Pick,
  residentModel: string | null,
): Record<string, WaitingJob> {
  const losers: Record<string, WaitingJob> = {};
  const weighing = weigh(ledger.rules, residentModel);
  for (const band of ledger.bands.values()) {
    const others = band.heads(weighing).filter((head) => head.job.id !== pick.job.id);
    const loser = turnInBand(others, weighing.pointMs);
    if (loser !== undefined) losers[band.band] = loser.job;
  }
  return losers;
}

function heldUntil(
  ledger: Ledger,
  pick: Pick,
  weighing: Weighing,
  nowMs: number,
): number | undefined {
  const { expected } = ledger;
  if (expected?.job.band !== pick.band) return undefined;
  const heads = [...ledger.bands.values()]
    .filter((band) => band.band === pick.band)
    .flatMap((band) => band.heads(weighing));
  return holdUntil(expected, heads, Math.max(nowMs, ledger.nowMs), weighing);
}
