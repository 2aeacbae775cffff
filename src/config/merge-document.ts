/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Lays a document over the defaults: objects by key, everything else (arrays too) replaces, null removes the
 * entry. Neither argument is changed. What the result is worth, the schema decides.
 */
export function mergeDocument(defaults: JsonObject, over: JsonObject): JsonObject {
  const merged = new Map(Object.entries(defaults));
  for (const [key, value] of Object.entries(over)) {
    if (value === null) {
      merged.delete(key);
      continue;
    }
    const base = merged.get(key);
    merged.set(key, isObject(value) ? mergeDocument(isObject(base) ? base : {}, value) : value);
  }
  return Object.fromEntries(merged);
}

/** Whether a JSON value is an object, not an array and not null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Paths of entries called `__proto__`: no setting has that name, and copies of objects drop it without a
 * word.
 */
export function protoPaths(value: unknown, path: readonly PropertyKey[] = []): PropertyKey[][] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const here = [...path, key];
    return key === '__proto__' ? [here] : protoPaths(inner, here);
  });
}
