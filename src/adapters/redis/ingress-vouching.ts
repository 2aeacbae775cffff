import type { Redis } from 'ioredis';
import type { PoolKeys } from './keys.ts';

/** What an ingress' connection is called, so that others see it is still there. */
export const ingressConnectionName = (ingressId: string): string => `berth-ingress-${ingressId}`;

/** An ingress is vouched for when its key has less than this left, and then for so long, in ms. */
const VOUCH_MS = 2000;
/** Longest time an ingress that does not beat is vouched for, in ms: a machine that lost its power keeps its connections open. */
const AT_MOST_MS = 30_000;
/** What the liveness key holds when the ingress itself did not set it. */
const VOUCHED = 'vouched';

/**
 * Keeps an ingress alive that does not beat although its connection is there: it is starved or frozen, not dead, and its
 * clients wait on. A dead one's connections are closed by its kernel at once.
 */
export class IngressVouching {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;
  /** Since when each ingress has been silent, by performance.now(). */
  private readonly silentSince = new Map<string, number>();

  constructor(redis: Redis, keys: PoolKeys) {
    this.redis = redis;
    this.keys = keys;
  }

  /** To be called more often than a liveness key lasts. */
  async vouch(): Promise<void> {
    const ids = await this.redis.smembers(this.keys.ingresses);
    for (const id of this.silentSince.keys()) if (!ids.includes(id)) this.silentSince.delete(id);
    const silent = (await Promise.all(ids.map(async (id) => this.isSilent(id)))).filter(
      (id) => id !== undefined,
    );
    if (silent.length === 0) return;
    const clients = (await this.redis.client('LIST')) as string;
    const names = new Set(clients.match(/(?<= name=)\S+/g));
    for (const id of silent) {
      if (!names.has(ingressConnectionName(id))) continue;
      const since = this.silentSince.get(id) ?? performance.now();
      this.silentSince.set(id, since);
      if (performance.now() - since < AT_MOST_MS)
        await this.redis.set(this.keys.alive(id), VOUCHED, 'PX', VOUCH_MS);
    }
  }

  /** The id if its key is about to run out or was not set by itself. */
  private async isSilent(id: string): Promise<string | undefined> {
    const key = this.keys.alive(id);
    const [value, leftMs] = await Promise.all([this.redis.get(key), this.redis.pttl(key)]);
    if (value !== null && value !== VOUCHED) this.silentSince.delete(id);
    return leftMs < VOUCH_MS ? id : undefined;
  }
}
