/** A JSON Pointer (RFC 6901): empty for the whole, else `/` before each name. */
export const JSON_POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;

const INDEX = /^(?:0|[1-9][0-9]*)$/;

/** The names in a pointer, in order. The pointer must fit JSON_POINTER. */
export function pointerNames(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** What a pointer finds in a value; undefined when it finds nothing. */
export function valueAt(value: unknown, pointer: string): unknown {
  let found = value;
  for (const name of pointerNames(pointer)) {
    if (Array.isArray(found)) found = INDEX.test(name) ? found[Number(name)] : undefined;
    else if (isObject(found) && Object.hasOwn(found, name)) found = found[name];
    else return undefined;
  }
  return found;
}

/**
 * Puts a value where a pointer says, in a copy: a member of an object is replaced or added, an item of an array
 * replaced, or added at the end by `-`. Undefined when there is no such place.
 */
export function withValueAt(whole: unknown, pointer: string, value: unknown): unknown {
  return put(whole, pointerNames(pointer), value);
}

function put(whole: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value;
  if (Array.isArray(whole)) {
    const items = whole as unknown[];
    const index = name === '-' ? items.length : INDEX.test(name) ? Number(name) : NaN;
    if (!(index < items.length || (index === items.length && rest.length === 0))) return undefined;
    const item = put(items[index], rest, value);
    return item === undefined
      ? undefined
      : items.slice(0, index).concat([item], items.slice(index + 1));
  }
  if (!isObject(whole)) return undefined;
  const member = put(Object.hasOwn(whole, name) ? whole[name] : undefined, rest, value);
  return member === undefined
    ? undefined
    : Object.fromEntries([
        ...Object.entries(whole).filter(([each]) => each !== name),
        [name, member],
      ]);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
