const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** Set anew for the connection they travel on. */
const PER_CONNECTION_REQUEST = new Set(['host', 'content-length', 'expect']);

/**
 * The end-to-end headers of a flat list, in order and with their spelling: without the hop-by-hop ones and without
 * those that `Connection` names (RFC 9110, 7.6.1).
 */
export function endToEnd(flat: readonly string[]): string[] {
  const named = new Set<string>();
  eachHeader(flat, (name, value) => {
    if (name.toLowerCase() === 'connection') {
      for (const token of value.split(',')) named.add(token.trim().toLowerCase());
    }
  });
  return filterHeaders(flat, (name) => !HOP_BY_HOP.has(name) && !named.has(name));
}

/** What of a client's headers goes upstream. `drop`: further lower-case names to leave out. */
export function requestHeaders(flat: readonly string[], drop: ReadonlySet<string>): string[] {
  return filterHeaders(
    endToEnd(flat),
    (name) => !PER_CONNECTION_REQUEST.has(name) && !drop.has(name),
  );
}

/** The first value of a header in a flat list, by its lower-case name. */
export function headerOf(flat: readonly string[], lowerName: string): string | undefined {
  for (let index = 0; index + 1 < flat.length; index += 2)
    if (flat[index]?.toLowerCase() === lowerName) return flat[index + 1];
  return undefined;
}

function filterHeaders(flat: readonly string[], keep: (lowerName: string) => boolean): string[] {
  const kept: string[] = [];
  eachHeader(flat, (name, value) => {
    if (keep(name.toLowerCase())) kept.push(name, value);
  });
  return kept;
}

function eachHeader(flat: readonly string[], visit: (name: string, value: string) => void): void {
  for (let index = 0; index + 1 < flat.length; index += 2)
    visit(flat[index] ?? '', flat[index + 1] ?? '');
}
