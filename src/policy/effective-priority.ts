import { affinityBonus } from './affinity.ts';
import { agingSince } from './band-clock.ts';
import type { WaitingJob } from './job.ts';
import { pointMs, tierRule, type Rules } from './rules.ts';

/** What may decide an order beside the base priority, in the order in which it is asked about. */
export const terms = ['aging', 'affinity', 'fairness', 'tier'] as const;

/** One of them. */
export type Term = (typeof terms)[number];

/** By what waiting jobs are weighed against each other; `weigh` makes one. */
export interface Weighing {
  readonly rules: Rules;
  /** The model in GPU memory; null when it is not known. */
  readonly residentModel: string | null;
  /** A term left out of account, to see what it changes. */
  readonly without: Term | null;
  /** Points for the resident model. */
  readonly affinity: number;
  /** What one point is worth: D, in milliseconds. */
  readonly pointMs: number;
}

/** The oldest of the waiting jobs that are alike in all but arrival, and what its tier adds. */
export interface Front {
  readonly job: WaitingJob;
  readonly tierBonus: number;
}

/** The number a job competes with, and the terms that make it up, in points. */
export interface Score {
  /** The base priority. */
  readonly band: number;
  readonly tier: number;
  readonly affinity: number;
  readonly aging: number;
  /** The sum: what the job claims for its band; highest goes next. */
  readonly effective: number;
}

/** The weighing of a moment: what counts besides the jobs themselves. */
export function weigh(
  rules: Rules,
  residentModel: string | null,
  without: Term | null = null,
): Weighing {
  const affinity = without === 'affinity' ? 0 : rules.affinity.bonus;
  return { rules, residentModel, without, affinity, pointMs: pointMs(rules) };
}

/** A job as a front of its own. */
export function frontOf(job: WaitingJob, rules: Rules): Front {
  return { job, tierBonus: tierRule(job.tier, rules).bonus };
}

/** Base, tier and affinity: all of a job's points but those it waits for. */
export function strength(front: Front, weighing: Weighing): number {
  const { job, tierBonus } = front;
  const tier = weighing.without === 'tier' ? 0 : tierBonus;
  return job.base + tier + affinityBonus(job.model, weighing.residentModel, weighing.affinity);
}

/**
 * base + tier + affinity + waited / D, in milliseconds and less what all waiting jobs have in common at any
 * one time: the order of two jobs by it never changes while the resident model stays.
 */
export function literalMs(front: Front, weighing: Weighing): number {
  const since = weighing.without === 'aging' ? 0 : front.job.arrivalMs;
  return weighing.pointMs * strength(front, weighing) - since;
}

/** The same with the band's clock for the waiting: what the job claims against other bands. */
export function claimMs(front: Front, clockMs: number, weighing: Weighing): number {
  const { rules, without } = weighing;
  const since = without === 'aging' ? 0 : agingSince(clockMs, front.job.arrivalMs, rules);
  return weighing.pointMs * strength(front, weighing) - since;
}

/** The four terms of a waiting job as they stand now. */
export function score(
  job: WaitingJob,
  clockMs: number,
  nowMs: number,
  residentModel: string | null,
  rules: Rules,
): Score {
  const { tierBonus: tier } = frontOf(job, rules);
  const affinity = affinityBonus(job.model, residentModel, rules.affinity.bonus);
  const agedMs = Math.max(0, nowMs - agingSince(clockMs, job.arrivalMs, rules));
  const aging = agedMs / pointMs(rules);
  return { band: job.base, tier, affinity, aging, effective: job.base + tier + affinity + aging };
}
