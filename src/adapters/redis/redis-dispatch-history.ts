import type { Redis } from 'ioredis';
import type { DispatchHistory, DispatchRecord, EndRecord } from '../../ports/dispatch-log.ts';
import { unavailable } from './bull-job-queue.ts';
import { dispatchPages, dispatchRecordOf } from './dispatch-pages.ts';
import type { PoolKeys } from './keys.ts';

/** Records of one run: its dispatch, its end, and what others may have between them. */
const ABOUT_ONE_RUN = 10;
/** How long after its moment a record may come into the stream, in ms. */
const LATE_MS = 5000;

/** Reads the capped stream that RedisDispatchLog writes. */
export class RedisDispatchHistory implements DispatchHistory {
  private readonly redis: Redis;
  private readonly key: string;

  /** @param redis a `prompt` connection */
  constructor(redis: Redis, keys: PoolKeys) {
    this.redis = redis;
    this.key = keys.dispatches;
  }

  async since(): Promise<number> {
    const [oldest] = await this.read(async () => this.redis.xrange(this.key, '-', '+', 'COUNT', 1));
    if (oldest === undefined) return 0;
    const info = await this.read(async () => this.redis.xinfo('STREAM', this.key));
    const fields = info as (string | number)[];
    const field = (name: string): number => Number(fields[fields.indexOf(name) + 1]);
    return field('entries-added') > field('length') ? Number(oldest[0].split('-')[0]) : 0;
  }

  async *between(
    fromMs: number,
    toMs: number,
  ): AsyncGenerator<readonly (DispatchRecord | EndRecord)[]> {
    const before = await this.read(async () =>
      this.redis.xrevrange(this.key, `${fromMs}-0`, '-', 'COUNT', ABOUT_ONE_RUN),
    );
    yield goingOn(before.map(dispatchRecordOf).toReversed());
    try {
      const pages = dispatchPages(this.redis, this.key, `(${fromMs}-0`, `${toMs + LATE_MS}`);
      for await (const page of pages) yield page.filter(({ atMs }) => atMs <= toMs);
    } catch (error) {
      throw unavailable(error);
    }
  }

  private async read<T>(command: () => Promise<T>): Promise<T> {
    try {
      return await command();
    } catch (error) {
      throw unavailable(error);
    }
  }
}

/** From the last dispatch on; nothing where it has ended. */
function goingOn(records: (DispatchRecord | EndRecord)[]): (DispatchRecord | EndRecord)[] {
  const at = records.findLastIndex(({ kind }) => kind === 'dispatch');
  return at === -1 ? [] : records.slice(at);
}
