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
  private unsent: string[] = [];

  constructor(options: RedisDispatchLogOptions) {
    this.options = options;
  }

  add(record: DispatchRecord | EndRecord): void {
    this.unsent.push(JSON.stringify(record));
    if (this.unsent.length === 1) setImmediate(() => this.send());
  }

  private send(): void {
    const { redis, keys, kept } = this.options;
    const pipeline = redis.pipeline();
    for (const json of this.unsent) {
      pipeline.xadd(keys.dispatches, 'MAXLEN', '~', 2 * kept, '*', 'r', json);
    }
    this.unsent = [];
    pipeline.exec().catch(() => undefined);
  }
}
