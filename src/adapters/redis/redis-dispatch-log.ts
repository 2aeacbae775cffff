import type { Redis } from 'ioredis';
import type { DispatchLog, DispatchRecord, EndRecord } from '../../ports/dispatch-log.ts';
import type { PoolKeys } from './keys.ts';

/** What the log needs. */
export interface RedisDispatchLogOptions {
  redis: Redis;
  keys: PoolKeys;
  /** Records kept, at least. */
  kept: number;
}

/** Dispatch records in a capped stream, one JSON each in field `r`; a dispatch and its end are two of them. */
export class RedisDispatchLog implements DispatchLog {
  private readonly options: RedisDispatchLogOptions;

  constructor(options: RedisDispatchLogOptions) {
    this.options = options;
  }

  add(record: DispatchRecord | EndRecord): void {
    const { redis, keys, kept } = this.options;
    redis
      .xadd(keys.dispatches, 'MAXLEN', '~', 2 * kept, '*', 'r', JSON.stringify(record))
      .catch(() => undefined);
  }

  /** The newest records, newest first. */
  async newest(count: number): Promise<(DispatchRecord | EndRecord)[]> {
    const { redis, keys } = this.options;
    const entries = await redis.xrevrange(keys.dispatches, '+', '-', 'COUNT', count);
    return entries.map(([, [, json]]) => JSON.parse(json ?? 'null') as DispatchRecord | EndRecord);
  }
}
