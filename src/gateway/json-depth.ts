/** Most levels of objects and lists in a value that is written as JSON: writing recurses, and ends in an overflow. */
export const MOST_LEVELS = 512;

/** Whether a JSON value has more than `MOST_LEVELS` levels. Looks without recursion, at any depth. */
export function isTooDeep(value: unknown): boolean {
  let level = [value].filter(isNested);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MOST_LEVELS) return true;
    level = level.flatMap((each) => Object.values(each) as unknown[]).filter(isNested);
  }
  return false;
}

const isNested = (value: unknown): value is object => typeof value === 'object' && value !== null;
