import { score, type Score } from './effective-priority.ts';
import type { WaitingJob } from './job.ts';
import type { Ledger } from './ledger.ts';

/** Where a waiting job stands, in the numbers people are shown. The order comes from the plan, not from these. */
export interface Standing {
  readonly score: Score;
  /** Since when the job ages against other bands, unix milliseconds. */
  readonly agingSinceMs: number;
  /** Whether that is its own arrival, or when its band was last served. */
  readonly agingSince: 'arrival' | 'band';
  /** GPU time, divided by weight, until its lane has its turn in the band; 0: its turn has come. */
  readonly turnMs: number;
  readonly waitedMs: number;
}

/**
 * Where a waiting job stands now.
 *
 * @throws {RangeError} when it does not wait in the ledger
 */
export function standingOf(
  ledger: Ledger,
  job: WaitingJob,
  residentModel: string | null,
  nowMs: number,
): Standing {
  const band = ledger.bands.get(job.band);
  const lane = band?.lanes.get(job.member);
  if (band === undefined || lane === undefined) throw new RangeError(`job ${job.id} does not wait`);
  const latestMs = Math.max(nowMs, ledger.nowMs);
  const byBand = ledger.rules.aging.clock === 'band' && band.clockMs > job.arrivalMs;
  return {
    score: score(job, band.clockMs, latestMs, residentModel, ledger.rules),
    agingSinceMs: byBand ? band.clockMs : job.arrivalMs,
    agingSince: byBand ? 'band' : 'arrival',
    turnMs: lane.startTagMs - band.leastStartTagMs,
    waitedMs: latestMs - job.arrivalMs,
  };
}
