import {
  claimMs,
  literalMs,
  strength,
  weigh,
  type Front,
  type Term,
  type Weighing,
} from './effective-priority.ts';
import { byArrival, type MemberId, type WaitingJob } from './job.ts';
import type { LaneBooks } from './transitions.ts';

/** A lane, as far as its turn is concerned. */
export interface LaneView extends LaneBooks {
  readonly member: MemberId;
}

/**
 * The job that a lane would run, and its base, tier and affinity. Points are compared inside one band only,
 * so that of the band itself may be in them.
 */
export interface Head {
  readonly lane: LaneView;
  readonly job: WaitingJob;
  readonly points: number;
}

/**
 * A band with its waiting jobs that may run now. Only fronts are looked at; giving every job as a front of
 * its own changes no answer, only the price of it.
 */
export interface BandView {
  readonly band: string;
  readonly clockMs: number;
  /** At least the oldest of each model, base and tier. */
  readonly fronts: Iterable<Front>;
  /** The head of each lane that has a job to run. */
  heads(weighing: Weighing): readonly Head[];
}

/** The job that goes next. */
export interface Pick {
  readonly band: string;
  readonly job: WaitingJob;
  /** Members whose lane in the band had its turn before. */
  readonly passedOver: readonly MemberId[];
}

/**
 * The job that a lane would run: highest base + tier + affinity + waited / D, ties by arrival. Inside one
 * member's lane fairness has no meaning, so this is the plain formula.
 */
export function headOfLane(
  lane: LaneView,
  fronts: Iterable<Front>,
  weighing: Weighing,
): Head | undefined {
  const front = strongest(fronts, weighing);
  return front && { lane, job: front.job, points: strength(front, weighing) };
}

/**
 * Whose turn it is: the least S - D x points goes first, ties by arrival. A lane that was passed over for
 * the whole lead of the best counts as having the best points, so points are spent once.
 */
export function turnInBand(heads: readonly Head[], pointMs: number): Head | undefined {
  let best = -Infinity;
  for (const head of heads) if (head.points > best) best = head.points;

  let first: Head | undefined;
  let firstTurn = Infinity;
  for (const head of heads) {
    const { startTagMs, passedMs } = head.lane;
    const points = passedMs >= pointMs * (best - head.points) ? best : head.points;
    const turn = startTagMs - pointMs * points;
    if (first === undefined || isSooner(turn, head, firstTurn, first)) {
      first = head;
      firstTurn = turn;
    }
  }
  return first;
}

/** Members whose lane had its turn before the one that runs: (S, arrival) of their head comes before. */
function membersBefore(heads: readonly Head[], run: Head): MemberId[] {
  const { startTagMs } = run.lane;
  const members: MemberId[] = [];
  for (const head of heads) {
    const { lane } = head;
    if (isSooner(lane.startTagMs, head, startTagMs, run)) members.push(lane.member);
  }
  return members;
}

/** What a band claims for its strongest waiting job; the least there is when none may run. */
export function claimOfBand(band: BandView, weighing: Weighing): number {
  const { clockMs } = band;
  let highest = -Infinity;
  for (const front of band.fronts) highest = Math.max(highest, claimMs(front, clockMs, weighing));
  return highest;
}

/**
 * The job that goes next.
 *
 * 1. Each band claims with its strongest waiting job.
 * 2. The highest claim wins; ties by the arrival of the jobs that would run.
 * 3. The band runs the job whose turn it is.
 *
 * Nothing here depends on the time: between two events the answer stays the same.
 */
export function pickNext(bands: Iterable<BandView>, weighing: Weighing): Pick | undefined {
  const choice = choose(bands, weighing, (band) => {
    return turnInBand(band.heads(weighing), weighing.pointMs);
  });
  if (choice === undefined) return undefined;
  const { band, run } = choice;
  const passedOver = membersBefore(band.heads(weighing), run);
  return { band: band.band, job: run.job, passedOver };
}

/**
 * The job that would go next if one term did not count; without fairness a band runs the strongest of all
 * its jobs by base + tier + affinity + waited / D.
 */
export function pickWithout(
  term: Term,
  bands: Iterable<BandView>,
  weighing: Weighing,
): WaitingJob | undefined {
  const reweighed = weigh(weighing.rules, weighing.residentModel, term);
  const choice = choose(bands, reweighed, (band) => {
    if (term === 'fairness') return strongest(band.fronts, reweighed);
    return turnInBand(band.heads(reweighed), reweighed.pointMs);
  });
  return choice?.run.job;
}

/** The decision tree of `pickNext`, with what a band would run left open. */
function choose<T extends { readonly job: WaitingJob }>(
  bands: Iterable<BandView>,
  weighing: Weighing,
  runOf: (band: BandView) => T | undefined,
): { readonly band: BandView; readonly run: T } | undefined {
  let winner: { readonly claim: number; readonly band: BandView; readonly run: T } | undefined;
  for (const band of bands) {
    const claim = claimOfBand(band, weighing);
    if (winner !== undefined && claim < winner.claim) continue;
    const run = runOf(band);
    if (run === undefined) continue;
    if (claim === winner?.claim && byArrival(winner.run.job, run.job) < 0) continue;
    winner = { claim, band, run };
  }
  return winner;
}

function strongest(fronts: Iterable<Front>, weighing: Weighing): Front | undefined {
  let best: Front | undefined;
  let bestMs = 0;
  for (const front of fronts) {
    const ownMs = literalMs(front, weighing);
    if (best === undefined || ownMs > bestMs || (ownMs === bestMs && isEarlier(front, best))) {
      best = front;
      bestMs = ownMs;
    }
  }
  return best;
}

function isSooner(turn: number, head: Head, otherTurn: number, other: Head): boolean {
  return turn < otherTurn || (turn === otherTurn && isEarlier(head, other));
}

function isEarlier(a: { readonly job: WaitingJob }, b: { readonly job: WaitingJob }): boolean {
  return byArrival(a.job, b.job) < 0;
}
