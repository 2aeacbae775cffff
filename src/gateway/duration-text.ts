import type { EtaSeconds } from './queue-view.ts';

const UNITS = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
  ['s', 1],
] as const;

/** Seconds as a person reads them, in the two largest units: `45 s`, `4 min`, `3 h 20 min`. */
export function durationText(seconds: number): string {
  // Nobody asks for the seconds of a quarter of an hour.
  const whole = Math.max(0, seconds < 600 ? Math.round(seconds) : Math.round(seconds / 60) * 60);
  const at = UNITS.findIndex(([, length]) => whole >= length);
  if (at === -1) return '0 s';
  let left = whole;
  const parts: string[] = [];
  for (const [unit, length] of UNITS.slice(at, at + 2)) {
    const count = Math.floor(left / length);
    left -= count * length;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.join(' ');
}

/** A range of seconds, `2 min to 5 min`; one duration when both ends read alike; `unknown` without one. */
export function etaText(eta: EtaSeconds | null | undefined): string {
  if (eta === null || eta === undefined) return 'unknown';
  const [from, to] = [durationText(eta.p50), durationText(eta.p90)];
  return from === to ? from : `${from} to ${to}`;
}
