import type { ActivityRow } from './activity.ts';

interface Histogram {
  readonly bins: readonly number[];
  readonly min: number;
  readonly max: number;
  readonly binSize: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

const fewestBins = 5;
const mostBins = 20;

/** What `/api/metrics/stats` answers: sums, and how the speeds (tokens a second) are spread; null: no speeds. */
export function statsOf(rows: readonly ActivityRow[]): object {
  const sum = (value: (tokens: ActivityRow['tokens']) => number): number =>
    rows.reduce((total, { tokens }) => total + value(tokens), 0);
  const speeds = (value: (tokens: ActivityRow['tokens']) => number): number[] =>
    rows.map(({ tokens }) => value(tokens)).filter((speed) => speed > 0);
  return {
    total_requests: rows.length,
    total_input_tokens: sum(({ input_tokens }) => input_tokens),
    total_output_tokens: sum(({ output_tokens }) => output_tokens),
    total_cache_tokens: sum(({ cache_tokens }) => cache_tokens),
    prompt_histogram: histogramOf(speeds(({ prompt_per_second }) => prompt_per_second)),
    gen_histogram: histogramOf(speeds(({ tokens_per_second }) => tokens_per_second)),
  };
}

/** Sturges' number of bins, from 5 to 20; a single one when all values are equal. */
function histogramOf(values: readonly number[]): Histogram | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const [min = 0, max = 0] = [sorted[0], sorted.at(-1)];
  const at = (share: number): number => quantile(sorted, share);
  const summary = { min, max, p50: at(0.5), p95: at(0.95), p99: at(0.99) };
  if (min === max) return { bins: [values.length], binSize: 0, ...summary };
  const wanted = Math.ceil(Math.log2(values.length)) + 1;
  const count = Math.min(mostBins, Math.max(fewestBins, wanted));
  const binSize = (max - min) / count;
  const bins = new Array<number>(count).fill(0);
  for (const value of values) {
    const bin = Math.min(count - 1, Math.floor((value - min) / binSize));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  return { bins, binSize, ...summary };
}

/** With linear interpolation between neighbours. */
function quantile(sorted: readonly number[], share: number): number {
  const rank = share * (sorted.length - 1);
  const below = sorted[Math.floor(rank)] ?? 0;
  const above = sorted[Math.ceil(rank)] ?? below;
  return below + (rank - Math.floor(rank)) * (above - below);
}
