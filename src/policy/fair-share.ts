import { largestOffset, pointMs, type Rules } from './rules.ts';

const leastCostMs = 100;

/** S of a lane that was empty: a member never starts ahead of the band, nor free of its own debt. */
export function startTag(finishTagMs: number | undefined, virtualMs: number): number {
  return Math.max(finishTagMs ?? 0, virtualMs);
}

/**
 * V after a dispatch, from the S of the lane that runs and the least S of the band's waiting lanes (that
 * one included). A run ahead of its turn pulls V along no further than its lead could have been.
 */
export function virtualTime(
  virtualMs: number,
  leastStartTagMs: number,
  dispatchedStartTagMs: number,
  rules: Rules,
): number {
  const leadMs = pointMs(rules) * largestOffset(rules);
  return Math.max(virtualMs, leastStartTagMs, dispatchedStartTagMs - leadMs);
}

/** F after a run of that cost: GPU time counts less the greater the weight; rounded up to milliseconds. */
export function finishTag(startTagMs: number, costMs: number, weight: number): number {
  return startTagMs + Math.ceil(costMs / weight);
}

/** What a run that has ended is charged: what it used, at least 100 ms, so that failing is not free. */
export function chargedCost(usedMs: number): number {
  return Math.max(leastCostMs, usedMs);
}
