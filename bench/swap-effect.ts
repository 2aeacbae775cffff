import type { Redis } from 'ioredis';
import { connectRedis } from '../src/adapters/redis/connection.ts';
import { poolKeys } from '../src/adapters/redis/keys.ts';
import { PoolStatus } from '../src/adapters/redis/pool-status.ts';
import type { JobFacts } from '../src/ports/job-queue.ts';
import { eventually } from '../test/support/eventually.ts';
import type { GapGpu } from './idle-gap.ts';
import { MODELS } from './model-server.ts';
import type { BenchModelServer } from './model-server.ts';
import type { Figures } from './pass.ts';
import { quantile } from './statistics.ts';

const keys = poolKeys('gpu');

/**
 * What a swap that Berth did not order changes, `count` times while a job is held: ms until the worker has noticed, the share
 * of next dispatches that wanted the new model, and, after the last one, seconds until BullMQ's own order begins
 * with a job that wants it. Every lane has jobs for every model.
 */
export async function measureSwap(
  server: BenchModelServer,
  redisUrl: string,
  gpu: GapGpu,
  count: number,
): Promise<Figures> {
  const redis = connectRedis(redisUrl, 'patient', () => undefined);
  try {
    const status = new PoolStatus(redis, keys);
    const toldMs: number[] = [];
    let followed = 0;
    for (let swap = 0; swap < count; swap += 1) {
      const target = await modelToLoad(redis, gpu);
      const loadedAt = performance.now();
      server.load(target);
      await eventually(async () => (await status.resident()) === target, {
        everyMs: 1,
        what: 'the worker to notice the swap',
      });
      toldMs.push(performance.now() - loadedAt);
      await gpu.measure(1);
      if (gpu.modelAtHand === target) followed += 1;
    }
    const dispatchedAt = performance.now();
    await eventually(async () => (await firstModel(redis)) === gpu.modelAtHand, {
      timeoutMs: 60_000,
      everyMs: 20,
      what: "BullMQ's order to follow the swap",
    });
    return {
      'swap.told': quantile(toldMs, 0.5),
      'swap.followed': followed / count,
      'swap.numbers': (performance.now() - dispatchedAt) / 1000,
    };
  } finally {
    redis.disconnect();
  }
}

/** Neither the one at hand nor the one that BullMQ's order begins with: what follows is then the swap's doing. */
async function modelToLoad(redis: Redis, gpu: GapGpu): Promise<string> {
  const first = await firstModel(redis);
  const other = MODELS.find((model) => model !== first && model !== gpu.modelAtHand);
  if (other === undefined) throw new Error('there are too few models');
  return other;
}

async function firstModel(redis: Redis): Promise<string> {
  const [id = ''] = await redis.zrange(`${keys.queue}prioritized`, '0', '0');
  const data = await redis.hget(`${keys.queue}${id}`, 'data');
  if (data === null) throw new Error('nothing waits');
  return (JSON.parse(data) as JobFacts).model;
}
