/** Nearest-rank quantile of unsorted samples; `share` from 0 to 1. Throws when there are none. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  const value =
    sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(sorted.length * share) - 1))];
  if (value === undefined) throw new Error('no samples');
  return value;
}

/** One figure over the repeats of a run. */
export interface Spread {
  median: number;
  least: number;
  most: number;
  repeats: number;
}

/** Median, least and most of the repeats' figures. */
export function spread(figures: readonly number[]): Spread {
  return {
    median: quantile(figures, 0.5),
    least: Math.min(...figures),
    most: Math.max(...figures),
    repeats: figures.length,
  };
}
