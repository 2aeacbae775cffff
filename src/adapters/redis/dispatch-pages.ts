import type { Redis } from 'ioredis';
import type { DispatchRecord, EndRecord } from '../../ports/dispatch-log.ts';

const PAGE = 500;

/** Entries of the stream of dispatch records, oldest first, a page at a time; `from` and `to` as XRANGE takes them. */
export async function* dispatchPages(
  redis: Redis,
  key: string,
  from = '-',
  to = '+',
): AsyncGenerator<(DispatchRecord | EndRecord)[]> {
  for (let start = from; ;) {
    const page = await redis.xrange(key, start, to, 'COUNT', PAGE);
    yield page.map(dispatchRecordOf);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    start = `(${last[0]}`;
  }
}

/** The record in an entry of that stream. */
export const dispatchRecordOf = ([, [, json]]: [id: string, fields: string[]]):
  DispatchRecord | EndRecord => JSON.parse(json ?? 'null') as DispatchRecord | EndRecord;
