import { chargedClock, firstClock } from './band-clock.ts';
import { chargedCost, finishTag, startTag, virtualTime } from './fair-share.ts';
import type { MemberId, WaitingJob } from './job.ts';
import { tierRule, type Rules } from './rules.ts';

/** The books of one band, in whole milliseconds. */
export interface BandBooks {
  /** Since when the band's jobs age against other bands, at the earliest. */
  readonly clockMs: number;
  /** When the band's last run ended. */
  readonly lastEndMs: number;
  /** V: GPU time, divided by weight, that a member of the band has had who was never short. */
  readonly virtualMs: number;
}

/** The books of one lane: one member's waiting jobs in one band. */
export interface LaneBooks {
  /** S: the least goes first. */
  readonly startTagMs: number;
  /** GPU time of jobs that went before this lane though its turn had come. */
  readonly passedMs: number;
}

/** The job that has the GPU, with what the books need when it ends or goes back. */
export interface Run {
  readonly job: WaitingJob;
  readonly startedMs: number;
  /** The lane's books, and the band's clock, as they were at the dispatch. */
  readonly lane: LaneBooks;
  readonly clockMs: number;
  /** Members whose lane in the band had its turn before this job. */
  readonly passedOver: readonly MemberId[];
}

/** What an end or a hand-back makes of a run's band and lane. */
export interface SettledRun {
  readonly band: BandBooks;
  /** The lane's books, to be kept if it still has waiting jobs. */
  readonly lane: LaneBooks;
  /** F of the member in the band. */
  readonly finishTagMs: number;
  /** GPU time charged, for the lanes passed over as well. */
  readonly costMs: number;
}

/** Books of a band that has nothing waiting and nothing running: V = 0, every F forgotten. */
export function rest(band: BandBooks): BandBooks {
  return { ...band, virtualMs: 0 };
}

/** A job arrives in a band that had nothing waiting. */
export function wakeBand(band: BandBooks, arrivalMs: number): BandBooks {
  return { ...band, clockMs: firstClock(arrivalMs, band.lastEndMs) };
}

/** A job arrives in a lane that had nothing waiting; `finishTagMs` is the member's F, if it has one. */
export function openLane(band: BandBooks, finishTagMs: number | undefined): LaneBooks {
  return { startTagMs: startTag(finishTagMs, band.virtualMs), passedMs: 0 };
}

/** A job of the lane is dispatched; `leastStartTagMs` is the least S of the band's waiting lanes, this included. */
export function dispatchFrom(
  band: BandBooks,
  lane: LaneBooks,
  leastStartTagMs: number,
  rules: Rules,
): BandBooks {
  const virtualMs = virtualTime(band.virtualMs, leastStartTagMs, lane.startTagMs, rules);
  return { ...band, virtualMs };
}

/** A run ends, however it went. */
export function endRun(
  band: BandBooks,
  run: Run,
  end: { readonly nowMs: number; readonly usedMs: number },
  rules: Rules,
): SettledRun {
  const costMs = chargedCost(end.usedMs);
  const finishTagMs = finishTag(run.lane.startTagMs, costMs, weightOf(run, rules));
  const charge = { startedMs: run.startedMs, nowMs: end.nowMs, costMs };
  return {
    band: {
      ...band,
      clockMs: chargedClock(band.clockMs, charge, rules),
      lastEndMs: end.nowMs,
    },
    lane: { startTagMs: finishTagMs, passedMs: 0 },
    finishTagMs,
    costMs,
  };
}

/** A run goes back to the queue: the clock as it was at its dispatch, its lane charged for what was used. */
export function handBackRun(band: BandBooks, run: Run, usedMs: number, rules: Rules): SettledRun {
  const finishTagMs = finishTag(run.lane.startTagMs, usedMs, weightOf(run, rules));
  return {
    band: { ...band, clockMs: run.clockMs },
    lane: { startTagMs: finishTagMs, passedMs: run.lane.passedMs },
    finishTagMs,
    costMs: usedMs,
  };
}

/** A lane waited while a job ran that went before it though its turn had come. */
export function passOver(lane: LaneBooks, costMs: number): LaneBooks {
  return { ...lane, passedMs: lane.passedMs + costMs };
}

function weightOf(run: Run, rules: Rules): number {
  return tierRule(run.job.tier, rules).weight;
}
