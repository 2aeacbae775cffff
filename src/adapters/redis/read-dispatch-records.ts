import type { DispatchRecord, EndRecord } from '../../ports/dispatch-log.ts';
import { connectRedis, whenReady } from './connection.ts';
import { poolKeys } from './keys.ts';

const PAGE = 1000;
const ANSWERS_WITHIN_MS = 5000;

/**
 * Every dispatch record of a pool that is kept, oldest first, over a connection of its own.
 *
 * @throws {Error} saying so when Redis does not answer
 */
export async function readDispatchRecords(
  url: string,
  poolName: string,
): Promise<(DispatchRecord | EndRecord)[]> {
  const redis = connectRedis(url, 'prompt', () => undefined);
  try {
    await whenReady(redis, ANSWERS_WITHIN_MS);
    const records: (DispatchRecord | EndRecord)[] = [];
    for (let from = '-'; ;) {
      const page = await redis.xrange(poolKeys(poolName).dispatches, from, '+', 'COUNT', PAGE);
      records.push(
        ...page.map(([, [, json]]) => JSON.parse(json ?? 'null') as DispatchRecord | EndRecord),
      );
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return records;
      from = `(${last[0]}`;
    }
  } finally {
    redis.disconnect();
  }
}
