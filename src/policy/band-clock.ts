import { bandSpan, largestOffset, pointMs, type Rules } from './rules.ts';

/** Where the clock of a band starts that had nothing waiting, in unix milliseconds. */
export function firstClock(arrivalMs: number, lastEndMs: number): number {
  return Math.max(arrivalMs, lastEndMs);
}

/** A run, as far as its band's clock is concerned. */
export interface ClockCharge {
  /** When the run was dispatched, and now that it has ended. */
  readonly startedMs: number;
  readonly nowMs: number;
  /** GPU time it used. */
  readonly costMs: number;
}

/**
 * Where a band's clock stands after one of its runs: each GPU-second moves it `charge` seconds on, never
 * past now. What it had earned before the run counts up to twice the points between the extremes, so that
 * a long outage does not buy a row of runs.
 */
export function chargedClock(clockMs: number, run: ClockCharge, rules: Rules): number {
  const mostEarnedMs = 2 * pointMs(rules) * (bandSpan(rules) + largestOffset(rules));
  const earnedFromMs = Math.max(clockMs, run.startedMs - mostEarnedMs);
  return Math.min(run.nowMs, Math.round(earnedFromMs + rules.aging.charge * run.costMs));
}

/** Since when a job counts as waiting against other bands: its band's clock, or its own arrival. */
export function agingSince(clockMs: number, arrivalMs: number, rules: Rules): number {
  return rules.aging.clock === 'job' ? arrivalMs : Math.max(clockMs, arrivalMs);
}
