import type { Redis } from 'ioredis';
import { META_KEY } from './keys.ts';

/** Layout of everything under `{berth}` that this code reads and writes. */
const LAYOUT_VERSION = 1;

/** What Redis says of itself. */
export interface RedisHealth {
  hasAof: boolean;
  mayEvict: boolean;
  policy: string;
  usedBytes: number;
  /** 0: no limit is set. */
  maxBytes: number;
}

/** Reads memory and durability in one round trip. */
export async function readRedisHealth(redis: Redis): Promise<RedisHealth> {
  const [memory, persistence] = await Promise.all([
    redis.info('memory'),
    redis.info('persistence'),
  ]);
  const field = (text: string, name: string): string =>
    new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(text)?.[1] ?? '';
  const policy = field(memory, 'maxmemory_policy');
  return {
    hasAof: field(persistence, 'aof_enabled') === '1',
    mayEvict: policy !== '' && policy !== 'noeviction',
    policy,
    usedBytes: Number(field(memory, 'used_memory')),
    maxBytes: Number(field(memory, 'maxmemory')),
  };
}

/** Marks a new Redis with our layout; throws, having written nothing, when it holds a newer one. */
export async function checkLayout(redis: Redis): Promise<void> {
  const found = await redis.hget(META_KEY, 'layout');
  if (found === null) {
    await redis.hsetnx(META_KEY, 'layout', LAYOUT_VERSION);
  } else if (Number(found) > LAYOUT_VERSION) {
    throw new Error(
      `Redis holds layout ${found} of Berth, this version knows ${LAYOUT_VERSION}: use a newer Berth`,
    );
  }
}
