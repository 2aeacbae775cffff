import type { LogEntry, ResponseEnd, ResponseHead } from '../../ports/response-log.ts';

/** Sequence part of a run's last entry: the largest a stream id can have, so nothing of the run comes after it. */
export const END_SEQUENCE = '18446744073709551615';

/** A stream entry as ioredis returns it in binary. */
export type RawEntry = [id: Buffer, fields: Buffer[]];

/** One entry to store: id, field, value. */
export type StoredEntry = [id: string, field: 'h' | 'd' | 'f' | 'e', value: string | Buffer];

/** The log's first entry of a run. */
export const headEntry = (run: number, head: ResponseHead): StoredEntry => [
  `${run}-0`,
  'h',
  JSON.stringify(head),
];

/** Body bytes up to `endOffset`. */
export const bytesEntry = (run: number, endOffset: number, bytes: Buffer): StoredEntry => [
  `${run}-${endOffset}`,
  'd',
  bytes,
];

/** Body bytes up to `endOffset` are in the run's file. */
export const fileEntry = (run: number, endOffset: number): StoredEntry => [
  `${run}-${endOffset}`,
  'f',
  '',
];

/** The log's last entry of a run. */
export const endEntry = (run: number, end: ResponseEnd): StoredEntry => [
  `${run}-${END_SEQUENCE}`,
  'e',
  JSON.stringify(end),
];

/** Reads an entry back. Throws on one that was never written by `…Entry`. */
export function parseEntry([rawId, fields]: RawEntry): LogEntry {
  const id = rawId.toString();
  const dash = id.indexOf('-');
  const run = Number(id.slice(0, dash));
  const sequence = id.slice(dash + 1);
  const field = fields[0]?.toString();
  const value = fields[1] ?? Buffer.alloc(0);
  switch (field) {
    case 'h':
      return { kind: 'head', run, head: JSON.parse(value.toString()) as ResponseHead };
    case 'd':
      return { kind: 'bytes', run, endOffset: Number(sequence), bytes: value };
    case 'f':
      return { kind: 'file', run, endOffset: Number(sequence) };
    case 'e':
      return { kind: 'end', run, end: JSON.parse(value.toString()) as ResponseEnd };
    case undefined:
    default:
      throw new Error(`response log entry ${id} has an unknown field`);
  }
}
