import type { DispatchRecord, EndRecord } from '../../ports/dispatch-log.ts';
import { connectRedis, whenReady } from './connection.ts';
import { dispatchPages } from './dispatch-pages.ts';
import { poolKeys } from './keys.ts';

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
    for await (const page of dispatchPages(redis, poolKeys(poolName).dispatches))
      records.push(...page);
    return records;
  } finally {
    redis.disconnect();
  }
}
