import type { Rules } from '../policy/rules.ts';
import type { RanJob, Simulation } from './run.ts';

/** One configuration's simulation, under the name it is shown by. */
export interface Outcome {
  readonly name: string;
  readonly simulation: Simulation;
}

const minute = 60_000;

/**
 * The table of a workload, one block a configuration side by side: waits of each band and of each member in
 * it, GPU time and share, then swaps and utilisation.
 */
export function reportOf(outcomes: readonly Outcome[], rules: Rules): string {
  const keys = [...new Set(outcomes.flatMap(({ simulation }) => groupsOf(simulation, rules)))];
  const head = [
    '',
    ...outcomes.flatMap(() => ['jobs', 'p50', 'p95', 'max', 'last', 'GPU', 'share']),
  ];
  const rows = keys.map((key) => [
    key,
    ...outcomes.flatMap(({ simulation }) => cells(simulation, runsOf(simulation, key))),
  ]);
  const names = outcomes.map(({ name }) => name);
  const lines = [
    'waits, the last end and GPU time in minutes; share of the time the GPU was busy',
    '',
    ...(names.length > 1 ? [`left: ${names.join('; right: ')}`, ''] : []),
    ...table([head, ...rows]),
    '',
    ...outcomes.map((outcome) => `${outcome.name}: ${totals(outcome.simulation)}`),
  ];
  return lines.join('\n');
}

/** The wait, in milliseconds, that this part of the runs did not exceed; 0 without runs. */
export function waitQuantile(runs: readonly RanJob[], part: number): number {
  const waits = runs.map(({ job, startMs }) => startMs - job.arrivalMs).sort((a, b) => a - b);
  return waits[Math.max(0, Math.ceil(part * waits.length) - 1)] ?? 0;
}

/** Bands from the highest down, each followed by its members in the order of their names. */
function groupsOf(simulation: Simulation, rules: Rules): string[] {
  const bands = Object.entries(rules.bands).sort((a, b) => b[1] - a[1]);
  return bands.flatMap(([band]) => {
    const members = simulation.ran
      .filter(({ job }) => job.band === band)
      .map(({ job }) => job.member);
    const names = [...new Set<string>(members)].sort((a, b) =>
      a.localeCompare(b, 'en', { numeric: true }),
    );
    if (names.length === 0) return [];
    return names.length === 1
      ? [`${band} ${names.join()}`]
      : [band, ...names.map((name) => `${band} ${name}`)];
  });
}

function runsOf(simulation: Simulation, key: string): RanJob[] {
  const [band, member] = key.split(' ');
  return simulation.ran.filter(
    ({ job }) => job.band === band && (member === undefined || job.member === member),
  );
}

function cells(simulation: Simulation, runs: readonly RanJob[]): string[] {
  const gpuMs = busyMs(runs);
  return [
    String(runs.length),
    ...[0.5, 0.95, 1].map((part) => (waitQuantile(runs, part) / minute).toFixed(1)),
    (Math.max(0, ...runs.map(({ endMs }) => endMs)) / minute).toFixed(0),
    (gpuMs / minute).toFixed(0),
    (gpuMs / Math.max(1, busyMs(simulation.ran))).toFixed(3),
  ];
}

function totals(simulation: Simulation): string {
  const { ran, waiting, heldMs, endMs } = simulation;
  const swapMs = ran.reduce((sum, run) => sum + run.swapMs, 0);
  const swaps = ran.filter((run) => run.swapMs > 0).length;
  return (
    `${swaps} swaps (${(swapMs / minute).toFixed(0)} min), ` +
    `${((100 * busyMs(ran)) / Math.max(1, endMs)).toFixed(1)} % busy of ${(endMs / minute).toFixed(0)} min, ` +
    `held for ${(heldMs / 1000).toFixed(1)} s, ${waiting.length} still waiting`
  );
}

function busyMs(runs: readonly RanJob[]): number {
  return runs.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[column] ?? 0) + 2),
      )
      .join('')
      .trimEnd(),
  );
}
