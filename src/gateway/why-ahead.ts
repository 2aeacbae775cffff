import { affinityBonus } from '../policy/affinity.ts';
import { tierRule } from '../policy/rules.ts';
import type { Rules } from '../policy/rules.ts';

/**
 * Why another job goes before one that waits: the first of these that speaks for it.
 *
 * - `running`: it had the GPU already.
 * - `higher_band`, `aged_band`: its band is higher; or lower, but has waited so long that it claims more.
 * - `fair_turn`: in the same band it is its member's turn.
 * - `base`, `tier`, `affinity`: more points in the same band, by base priority, tier, or as the resident model's.
 * - `earlier`: alike in all of these, it came first.
 */
export const reasonsAhead = [
  'running',
  'higher_band',
  'aged_band',
  'fair_turn',
  'base',
  'tier',
  'affinity',
  'earlier',
] as const;

/** One of them. */
export type ReasonAhead = (typeof reasonsAhead)[number];

/** What two jobs are told apart by. */
export interface Contender {
  readonly member: string | null;
  readonly band: string;
  readonly base: number;
  readonly tier: string;
  readonly model: string | null;
}

/** Whether the one's band is named and higher than the other's. */
function isHigher(one: Contender, other: Contender, { bands }: Rules): boolean {
  return (bands[one.band] ?? one.base) > (bands[other.band] ?? other.base);
}

/**
 * Why `ahead` goes before `mine`.
 *
 * @param byPoints whether, in a band, its member's turn had not come: points alone can have put it there
 * @param residentModel what the GPU held when it was decided; null: not known
 */
export function whyAhead(
  ahead: Contender,
  mine: Contender,
  byPoints: boolean,
  residentModel: string | null,
  rules: Rules,
): ReasonAhead {
  if (ahead.band !== mine.band) return isHigher(ahead, mine, rules) ? 'higher_band' : 'aged_band';
  const isOwn = ahead.member === mine.member;
  if (!isOwn && !byPoints) return 'fair_turn';
  if (ahead.base > mine.base) return 'base';
  if (tierRule(ahead.tier, rules).bonus > tierRule(mine.tier, rules).bonus) return 'tier';
  const [its, own] = [ahead.model, mine.model].map((model) =>
    affinityBonus(model ?? '', residentModel, rules.affinity.bonus),
  );
  if ((its ?? 0) > (own ?? 0)) return 'affinity';
  return isOwn ? 'earlier' : 'fair_turn';
}
