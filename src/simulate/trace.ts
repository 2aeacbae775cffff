import * as z from 'zod';
import { baseBound } from '../policy/rules.ts';
import type { Arrival, Workload } from './workload.ts';

const seconds = z.number({ error: 'must be a number from 0' }).min(0, 'must be a number from 0');
const text = z.string({ error: 'must be a string' });
const points = `must be a whole number from -${baseBound} to ${baseBound}`;

/**
 * A job of a trace. `at`: arrival in seconds from any origin; `seconds`: GPU time with the model resident. The others
 * may be left out: one shared member, free, 0, one model.
 */
const traceLine = z.strictObject({
  at: seconds,
  seconds,
  member: text.default('shared'),
  tier: text.default('free'),
  priority: z.int({ error: points }).min(-baseBound, points).max(baseBound, points).default(0),
  model: text.default('model'),
});

/** A line of a trace, nothing left out. */
export type TraceLine = z.output<typeof traceLine>;

/**
 * Reads a trace: one JSON object a line, blank lines skipped.
 *
 *     {"at": 12.5, "seconds": 250, "member": "mort", "tier": "pro", "priority": -100, "model": "video"}
 *
 * @throws {RangeError} naming the first line that does not fit, or when there is none at all
 */
export function readTrace(trace: string, swapMs: number): Workload {
  const arrivals = trace
    .split('\n')
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '')
    .map(({ line, number }) => arrivalOf(line, number));
  if (arrivals.length === 0) throw new RangeError('the trace holds no job');
  const origin = arrivals.reduce((least, { atMs }) => Math.min(least, atMs), Infinity);
  const shifted = arrivals.map((arrival) => ({ ...arrival, atMs: arrival.atMs - origin }));
  return { arrivals: shifted, chains: [], swapMs };
}

/** Writes a trace that `readTrace` reads. */
export function traceText(lines: readonly TraceLine[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

function arrivalOf(line: string, number: number): Arrival {
  const parsed = traceLine.safeParse(objectOf(line, number));
  if (!parsed.success) {
    throw new RangeError(`line ${number} of the trace: ${faultOf(parsed.error.issues[0])}`);
  }
  const { at, seconds: runSeconds, priority, member, tier, model } = parsed.data;
  const [atMs, runMs] = [Math.round(1000 * at), Math.round(1000 * runSeconds)];
  return { atMs, runMs, base: priority, member, tier, model };
}

function objectOf(line: string, number: number): object {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = null;
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new RangeError(`line ${number} of the trace is no JSON object`);
}

function faultOf(issue: z.core.$ZodIssue | undefined): string {
  if (issue?.code === 'unrecognized_keys') return `${issue.keys.join(', ')} is not known`;
  return `${String(issue?.path[0])} ${issue?.message ?? 'does not fit'}`;
}
