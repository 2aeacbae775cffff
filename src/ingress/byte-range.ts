/** Bytes `from` up to, not including, `to`. */
export interface ByteRange {
  readonly from: number;
  readonly to: number;
}

/**
 * The part that a `Range` header asks for. Undefined: the whole, because there is no header, or one that may be ignored
 * (RFC 9110, 14.2): other units, several parts, or no range at all.
 */
export function byteRange(
  header: string | undefined,
  totalBytes: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first === '') {
    const from = Math.max(0, totalBytes - Number(last));
    return from < totalBytes ? { from, to: totalBytes } : 'unsatisfiable';
  }
  const from = Number(first);
  if (last !== '' && Number(last) < from) return undefined;
  if (from >= totalBytes) return 'unsatisfiable';
  return { from, to: last === '' ? totalBytes : Math.min(totalBytes, Number(last) + 1) };
}
