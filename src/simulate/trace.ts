import type { Arrival, Workload } from './workload.ts';

/**
 * Reads a trace: one JSON object a line, blank lines skipped.
 *
 *     {"at": 12.5, "seconds": 250, "member": "mort", "tier": "pro", "priority": -100, "model": "video"}
 *
 * `at`: arrival in seconds from any origin; `seconds`: GPU time with the model resident. The others may be
 * left out: one shared member, free, 0, one model.
 *
 * @throws {RangeError} naming the first line that does not fit
 */
export function readTrace(text: string, swapMs: number): Workload {
  const arrivals = text
    .split('\n')
    .map((line, index) => ({ line: line.trim(), number: index + 1 }))
    .filter(({ line }) => line !== '')
    .map(({ line, number }) => arrivalOf(line, number));
  const origin = Math.min(...arrivals.map(({ atMs }) => atMs));
  const shifted = arrivals.map((arrival) => ({ ...arrival, atMs: arrival.atMs - origin }));
  return { arrivals: shifted, chains: [], swapMs };
}

function arrivalOf(line: string, number: number): Arrival {
  const facts = objectOf(line, number);
  return {
    atMs: Math.round(1000 * numberOf(facts, 'at', number)),
    runMs: Math.round(1000 * numberOf(facts, 'seconds', number)),
    base: Math.round(numberOf(facts, 'priority', number, 0)),
    member: textOf(facts, 'member', number, 'shared'),
    tier: textOf(facts, 'tier', number, 'free'),
    model: textOf(facts, 'model', number, 'model'),
  };
}

function objectOf(line: string, number: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = null;
  }
  if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  throw new RangeError(`line ${number} of the trace is no JSON object`);
}

function numberOf(
  facts: Record<string, unknown>,
  name: string,
  line: number,
  fallback?: number,
): number {
  const value = facts[name] ?? fallback;
  const isFit = typeof value === 'number' && Number.isFinite(value);
  if (isFit && (name === 'priority' || value >= 0)) return value;
  throw new RangeError(`line ${line} of the trace: ${name} must be a number`);
}

function textOf(
  facts: Record<string, unknown>,
  name: string,
  line: number,
  fallback: string,
): string {
  const value = facts[name] ?? fallback;
  if (typeof value === 'string') return value;
  throw new RangeError(`line ${line} of the trace: ${name} must be a string`);
}
