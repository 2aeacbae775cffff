import type { Redis } from 'ioredis';
import type { PoolKeys } from './keys.ts';

const BEAT_MS = 1000;
/** An ingress that did not beat for so long is dead: its sync jobs are evicted. */
const ALIVE_MS = 3000;

/**
 * Keeps an ingress' liveness key alive, and speaks up at once when Redis is back after an outage, before anybody may
 * take its silence for death. `onBeat` runs after each beat that was heard.
 */
export class IngressPresence {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;
  private readonly ingressId: string;
  private readonly onBeat: () => Promise<void>;
  private timer: NodeJS.Timeout | undefined;
  private readonly beatSoon = (): void => void this.beat();

  constructor(redis: Redis, keys: PoolKeys, ingressId: string, onBeat: () => Promise<void>) {
    this.redis = redis;
    this.keys = keys;
    this.ingressId = ingressId;
    this.onBeat = onBeat;
  }

  /** Resolves after the first beat, or throws what it ran into; beats go on either way until `stop`. */
  async start(): Promise<void> {
    this.redis.on('ready', this.beatSoon);
    this.timer = setInterval(this.beatSoon, BEAT_MS);
    await this.send();
  }

  /** Ends the beats and takes the key away. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.redis.off('ready', this.beatSoon);
    await this.redis.del(this.keys.alive(this.ingressId)).catch(() => 0);
  }

  private async beat(): Promise<void> {
    try {
      await this.send();
      await this.onBeat();
    } catch {
      // The next beat tells; a lost connection is reported by the connection itself.
    }
  }

  private async send(): Promise<void> {
    await this.redis
      .multi()
      .set(this.keys.alive(this.ingressId), '1', 'PX', ALIVE_MS)
      .sadd(this.keys.ingresses, this.ingressId)
      .exec();
  }
}
