import type { Rules } from './rules.ts';

/**
 * The named band nearest to a base priority; halfway between two, the higher.
 *
 * @throws {RangeError} when the rules name no band (`checkRules` refuses such rules).
 */
export function nearestBand(base: number, rules: Rules): string {
  let nearest: readonly [string, number] | undefined;
  for (const band of Object.entries(rules.bands)) {
    if (nearest === undefined || isNearer(base, band[1], nearest[1])) nearest = band;
  }
  if (nearest === undefined) throw new RangeError('the rules name no band');
  return nearest[0];
}

function isNearer(base: number, value: number, than: number): boolean {
  const distance = Math.abs(base - value);
  const best = Math.abs(base - than);
  return distance < best || (distance === best && value > than);
}
