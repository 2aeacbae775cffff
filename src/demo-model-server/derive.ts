import { createHash } from 'node:crypto';

const words =
  'the a one some each fair calm bright quiet patient worker queue model shot lane band turn member tier lease ' +
  'waits runs loads answers streams counts learns ends begins returns keeps gives soon now then again slowly ' +
  'gladly there here and or while because until after before with under over near';
const vocabulary = words.split(' ');

/** An endless run of bytes that depends on the seed alone. */
function* bytesOf(seed: Uint8Array, purpose: string): Generator<number, never> {
  for (let block = 0; ; block += 1) {
    yield* createHash('sha256').update(seed).update(`${purpose} ${block}`).digest();
  }
}

/** Everything invented for one answer follows from the request's bytes, so equal requests get equal answers. */
export interface Derived {
  /** A short hexadecimal id. */
  readonly id: string;
  /** A plausible unix time in seconds that has nothing to do with the clock. */
  readonly created: number;
  /** A length in tokens between 16 and 47, for requests that set none. */
  readonly naturalTokens: number;
}

/** Id, time and length for the answer to a request with this hash. */
export function derive(seed: Uint8Array): Derived {
  const view = Buffer.from(seed);
  return {
    id: view.toString('hex', 0, 12),
    created: 1_700_000_000 + (view.readUInt32BE(12) % 30_000_000),
    naturalTokens: 16 + (view.readUInt8(16) % 32),
  };
}

/** So many tokens of prose: the first capitalised, each later one with its leading blank. */
export function* tokensOf(seed: Uint8Array, count: number): Generator<string> {
  const source = bytesOf(seed, 'text');
  for (let index = 0; index < count; index += 1) {
    const word = vocabulary[source.next().value % vocabulary.length] ?? '';
    yield index === 0 ? word.charAt(0).toUpperCase() + word.slice(1) : ` ${word}`;
  }
}

/** A vector of length 1 with so many dimensions. */
export function vectorOf(seed: Uint8Array, dimensions: number): number[] {
  const source = bytesOf(seed, 'vector');
  const raw = Array.from({ length: dimensions }, () => source.next().value - 127.5);
  const norm = Math.hypot(...raw);
  return raw.map((value) => Math.fround(value / norm));
}

const patternPeriod = 65_521;
const longestPiece = 1024 * 1024;
const pattern = Buffer.alloc(patternPeriod + longestPiece);
{
  const source = bytesOf(Buffer.from('pattern'), 'pattern');
  for (let at = 0; at < patternPeriod; at += 1) pattern[at] = source.next().value;
  for (let at = patternPeriod; at < pattern.length; at += patternPeriod) {
    pattern.copyWithin(at, 0, Math.min(patternPeriod, pattern.length - at));
  }
}

/**
 * The bytes from `offset` on of an endless fixed pattern, without copying: at most 1 MiB at a time.
 * What `/bytes` and the videos consist of.
 */
export function patternBytes(offset: number, length: number): Uint8Array {
  const at = offset % patternPeriod;
  return pattern.subarray(at, at + Math.min(length, longestPiece));
}
