const STEP = 2 ** 32;
/** Scores of the smallest and the largest BullMQ number a waiting job may have: 2 and 2^21 - 1. */
const LEAST = 2 * STEP;
const MOST = 2_097_151 * STEP + (STEP - 1);

/** A job that needs another score for BullMQ's order to be the plan's. */
export interface NewNumber {
  readonly id: string;
  readonly score: number;
}

/**
 * The fewest scores to rewrite so that the jobs stand in this order: the longest part that is in order already
 * stays, the others go between. When there is no room left between two, all are spread anew.
 *
 * @param order ids, first to last
 * @param scores BullMQ's scores as they are; jobs that have none are left out
 */
export function planNumbers(
  order: readonly string[],
  scores: ReadonlyMap<string, number>,
): NewNumber[] {
  const ids = order.filter((id) => scores.has(id));
  const current = ids.map((id) => scores.get(id) ?? 0);
  const keeps = longestRising(current);
  const changes: NewNumber[] = [];
  for (let index = 0; index < ids.length;) {
    if (keeps.has(index)) {
      index += 1;
      continue;
    }
    let end = index;
    while (end < ids.length && !keeps.has(end)) end += 1;
    const between = spread(index === 0 ? undefined : current[index - 1], current[end], end - index);
    if (between === undefined) return everything(ids, current);
    for (const [offset, score] of between.entries()) {
      changes.push({ id: ids[index + offset] ?? '', score });
    }
    index = end;
  }
  return changes;
}

/** Indexes of the longest rising part of the scores that are within bounds. */
function longestRising(scores: readonly number[]): Set<number> {
  const tails: number[] = [];
  const before: number[] = [];
  for (const [index, score] of scores.entries()) {
    if (score < LEAST || score > MOST) continue;
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((scores[tails[middle] ?? 0] ?? 0) < score) low = middle + 1;
      else high = middle;
    }
    before[index] = low > 0 ? (tails[low - 1] ?? -1) : -1;
    tails[low] = index;
  }
  const kept = new Set<number>();
  for (let index = tails.at(-1) ?? -1; index >= 0; index = before[index] ?? -1) kept.add(index);
  return kept;
}

/** `count` rising whole scores between two others; undefined when there is no room. */
function spread(
  after: number | undefined,
  until: number | undefined,
  count: number,
): number[] | undefined {
  const low = after ?? Math.max(LEAST - 1, (until ?? LEAST + STEP * count) - STEP * (count + 1));
  const high = until ?? Math.min(MOST + 1, low + STEP * (count + 1));
  const gap = (high - low) / (count + 1);
  if (gap < 1) return undefined;
  return Array.from({ length: count }, (_, index) => Math.floor(low + gap * (index + 1)));
}

function everything(ids: readonly string[], current: readonly number[]): NewNumber[] {
  const gap = (MOST - LEAST) / (ids.length + 1);
  return ids.flatMap((id, index) => {
    const score = Math.floor(LEAST + gap * (index + 1));
    return score === current[index] ? [] : [{ id, score }];
  });
}
