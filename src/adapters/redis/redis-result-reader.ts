import type { Redis } from 'ioredis';
import type { BodyStore } from '../../ports/body-store.ts';
import type { ResultReader } from '../../ports/film-store.ts';
import type { PoolKeys } from './keys.ts';
import { parseEntry } from './response-log-format.ts';

/** Reads whole answers back from their logs, for values that a shot takes from one. */
export class RedisResultReader implements ResultReader {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;
  private readonly store: BodyStore;

  constructor(redis: Redis, keys: PoolKeys, store: BodyStore) {
    this.redis = redis;
    this.keys = keys;
    this.store = store;
  }

  async bodyOf(jobId: string): Promise<Buffer | undefined> {
    const raw = await this.redis.xrangeBuffer(this.keys.log(jobId), '-', '+');
    const entries = raw.map(parseEntry);
    const last = entries.at(-1);
    if (last?.kind !== 'end' || !last.end.ok) return undefined;
    const pieces: Buffer[] = [];
    let offset = 0;
    for (const entry of entries) {
      if (entry.run !== last.run) continue;
      if (entry.kind === 'bytes') {
        pieces.push(entry.bytes);
        offset = entry.endOffset;
      } else if (entry.kind === 'file') {
        const name = `${jobId}.${entry.run}`;
        if ((await this.store.size(name)) === undefined) return undefined;
        for await (const piece of this.store.read(name, offset, entry.endOffset))
          pieces.push(piece);
        offset = entry.endOffset;
      }
    }
    return Buffer.concat(pieces);
  }
}
