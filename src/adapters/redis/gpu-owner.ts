import { hostname } from 'node:os';
import type { Redis } from 'ioredis';
import type { PoolKeys } from './keys.ts';
import type { RedisClock } from './redis-clock.ts';
import { Scripts } from './scripts.ts';

/** How long an owner that stopped beating keeps others of another host out, in ms. */
const OWNER_TTL_MS = 10_000;
const BEAT_MS = 2_000;

/** Who wants to own the pool's GPU. */
export interface GpuOwnerOptions {
  /** A `patient` connection. */
  redis: Redis;
  keys: PoolKeys;
  clock: RedisClock;
  /** Worker name from the configuration, for messages. */
  name: string;
  /** Name of the kernel lock this process holds. */
  lock: string;
  /** Kernel and network namespace the lock is visible in. */
  domain: string;
  /** Called once when somebody else has become the owner: this process must stop touching the GPU. */
  onLost: () => void;
}

/** The owner record in Redis and its fencing number. */
export class GpuOwner {
  readonly fence: string;
  private readonly options: GpuOwnerOptions;
  private readonly scripts: Scripts;
  private timer: NodeJS.Timeout | undefined;

  private constructor(options: GpuOwnerOptions, fence: string) {
    this.options = options;
    this.scripts = new Scripts(options.redis);
    this.fence = fence;
  }

  /** Takes the pool, or returns the one line that names who has it. */
  static async acquire(options: GpuOwnerOptions): Promise<GpuOwner | { heldBy: string }> {
    const scripts = new Scripts(options.redis);
    const sentAt = performance.now();
    const reply = (await scripts.run('own', options.keys.pool, describe(options))) as string[];
    if (reply[0] === 'held') {
      const seconds = Math.ceil(Number(reply[4]) / 1000);
      return {
        heldBy: `${String(reply[1])} (pid ${String(reply[2])} on ${String(reply[3])}, seen within ${seconds} s)`,
      };
    }
    options.clock.observe(Number(reply[2]), sentAt);
    return new GpuOwner(options, String(reply[1]));
  }

  /** Beats every two seconds until `release`. */
  start(): void {
    this.timer = setInterval(() => void this.beat(), BEAT_MS);
  }

  /** Beats once now; also after a reconnect. */
  async beat(): Promise<void> {
    const { keys, clock } = this.options;
    const sentAt = performance.now();
    try {
      const reply = (await this.scripts.run(
        'own-beat',
        keys.pool,
        describe(this.options, this.fence),
      )) as [number, string];
      clock.observe(Number(reply[1]), sentAt);
      if (reply[0] === 0) this.options.onLost();
    } catch {
      clock.distrust();
    }
  }

  /** Gives the pool up, so that the next owner need not wait. */
  async release(): Promise<void> {
    clearInterval(this.timer);
    const { redis, keys } = this.options;
    const current = await redis.hget(`${keys.pool}:owner`, 'fence');
    if (current === this.fence) await redis.del(`${keys.pool}:owner`);
  }
}

function describe(options: GpuOwnerOptions, fence?: string): string {
  return JSON.stringify({
    pool: options.keys.pool,
    name: options.name,
    pid: process.pid,
    host: hostname(),
    lock: options.lock,
    domain: options.domain,
    ttlMs: OWNER_TTL_MS,
    ...(fence === undefined ? {} : { fence }),
  });
}
