/** How often a path is decoded; what is coded more often reaches nobody decoded. */
const DECODINGS = 4;

/**
 * Every path that a server behind us might take a request target for, in lower case, without doubled or trailing
 * slashes: as it came and decoded again and again, with dot segments and with them resolved. A rule that closes a
 * path must close all of them; which one the model server, or a proxy in front of it, takes is not ours to guess.
 */
export function pathReadings(target: string): string[] {
  let text = target.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*/i, '').replace(/\?.*$/s, '');
  const readings = new Set<string>();
  for (let round = 0; round <= DECODINGS; round += 1) {
    for (const path of [text, text.replace(/[?#].*$/s, '')]) {
      const segments = segmentsOf(path);
      readings.add(`/${segments.filter((segment) => segment !== '.').join('/')}`);
      readings.add(`/${resolved(segments).join('/')}`);
    }
    const decoded = decode(text);
    if (decoded === text) break;
    text = decoded;
  }
  return [...readings];
}

function segmentsOf(path: string): string[] {
  return path
    .toLowerCase()
    .split(/[/\\]+/)
    .map((segment) => segment.replace(/;.*$/s, '').replace(/[\p{Cc}\s]+/gu, ''))
    .filter((segment) => segment !== '');
}

function resolved(segments: readonly string[]): string[] {
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  return kept;
}

/** One round of percent-decoding, byte by byte; what is no code stays as it is. */
function decode(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_code, hex: string) =>
    String.fromCharCode(parseInt(hex, 16)),
  );
}
