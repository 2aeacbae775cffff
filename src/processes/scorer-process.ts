import { openSidePort } from '../adapters/process/side-port.ts';
import { connectRedis } from '../adapters/redis/connection.ts';
import { poolKeys } from '../adapters/redis/keys.ts';
import { PoolStatus } from '../adapters/redis/pool-status.ts';
import { QueueCare } from '../adapters/redis/queue-care.ts';
import { RedisClock } from '../adapters/redis/redis-clock.ts';
import { checkLayout, readRedisHealth } from '../adapters/redis/redis-health.ts';
import { RepeatingDuties } from '../adapters/redis/repeating-duties.ts';
import { FileBodyStore } from '../adapters/storage/file-body-store.ts';
import type { ProcessTelemetry } from '../adapters/telemetry/telemetry.ts';
import type { BerthConfig } from '../config/load.ts';
import { createScorerDuties } from '../gateway/scorer-duties.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';
import type { RunningProcess } from './running-process.ts';
import { publishMetrics } from './publish-metrics.ts';

/** How often jobs of dead ingresses are looked for, in ms. */
const WATCH_MS = 500;

/** Starts the scorer. Resolves after its first pass. */
export async function startScorerProcess(
  config: BerthConfig,
  telemetry: ProcessTelemetry,
): Promise<RunningProcess> {
  if (config.redis.url === null)
    throw new StartRefused('the scorer needs REDIS_URL; `npm start` sets it up');
  const redis = connectRedis(config.redis.url, 'patient', (err) =>
    telemetry.log.debug({ err }, 'redis.error'),
  );
  const keys = poolKeys(config.pool);
  await checkLayout(redis);
  const clock = new RedisClock();
  redis.on('ready', () => clock.distrust());
  const care = new QueueCare(redis, keys, clock);
  const store = await FileBodyStore.open(config.dataDir);
  const duties = createScorerDuties({
    care,
    store,
    telemetry,
    memory: () => readRedisHealth(redis),
    admitBelowFraction: config.memory.admitBelowFraction,
  });
  await duties.pass();
  const repeating = new RepeatingDuties({
    redis,
    keys,
    duties: [
      { name: 'pass', everyMs: config.scorer.intervalSeconds * 1000, run: duties.pass },
      { name: 'watch', everyMs: WATCH_MS, run: duties.watch },
    ],
    onError: (err) => telemetry.log.warn({ err }, 'scorer.error'),
  });
  await repeating.start();
  const publishing = publishMetrics(telemetry, new PoolStatus(redis, keys), 'scorer');
  const side =
    config.scorer.port === null
      ? undefined
      : await openSidePort({
          host: config.http.host,
          port: config.scorer.port,
          fault: async () =>
            Promise.resolve(redis.status === 'ready' ? undefined : 'Redis is away'),
          metrics: () => telemetry.exposition(),
        });
  return {
    stop: async () => {
      clearInterval(publishing);
      side?.close();
      await repeating.stop(2000);
      redis.disconnect();
    },
  };
}
