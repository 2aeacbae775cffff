import { turnInBand, type Head } from './dispatch.ts';
import { frontOf, strength, type Weighing } from './effective-priority.ts';
import type { WaitingJob } from './job.ts';
import type { LaneBooks } from './transitions.ts';

/** A run that has ended and left its lane empty, of a member whose next job came promptly the last time. */
export interface Expected {
  /** The job that ran: the terms of the one expected. */
  readonly job: WaitingJob;
  readonly costMs: number;
  readonly endedMs: number;
  /** The books the member's lane would open with. */
  readonly lane: LaneBooks;
}

/**
 * How long to hold the GPU for the next job of a producer that sends one at a time, in unix milliseconds;
 * undefined: not at all. Asked when the pick comes from that producer's band; one from another runs at once.
 *
 * 1. Only as long as `hold.seconds`, and `hold.share` of the run that ended.
 * 2. Only if the expected job, arriving now with the terms of the last, would go first in its band.
 *
 * @param heads the heads of that band
 */
export function holdUntil(
  expected: Expected,
  heads: readonly Head[],
  nowMs: number,
  weighing: Weighing,
): number | undefined {
  const { rules } = weighing;
  const { seconds, share } = rules.aging.hold;
  const untilMs = expected.endedMs + Math.floor(Math.min(seconds * 1000, share * expected.costMs));
  if (nowMs >= untilMs) return undefined;

  const job = { ...expected.job, arrivalMs: nowMs, sequence: Infinity };
  const points = strength(frontOf(job, rules), weighing);
  const next: Head = { lane: { member: job.member, ...expected.lane }, job, points };
  return turnInBand([...heads, next], weighing.pointMs) === next ? untilMs : undefined;
}
