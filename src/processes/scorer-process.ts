import { setTimeout as sleep } from 'node:timers/promises';
import { openSidePort } from '../adapters/process/side-port.ts';
import { connectRedis } from '../adapters/redis/connection.ts';
import { reconcile } from '../adapters/redis/journal-reconciler.ts';
import { poolKeys } from '../adapters/redis/keys.ts';
import { LedgerMirror } from '../adapters/redis/ledger-mirror.ts';
import { PoolStatus } from '../adapters/redis/pool-status.ts';
import { QueueCare } from '../adapters/redis/queue-care.ts';
import { RedisDurationBook } from '../adapters/redis/redis-duration-book.ts';
import { RedisClock } from '../adapters/redis/redis-clock.ts';
import { checkLayout, readRedisHealth } from '../adapters/redis/redis-health.ts';
import { RepeatingDuties } from '../adapters/redis/repeating-duties.ts';
import { Scripts } from '../adapters/redis/scripts.ts';
import { PlanKeeper } from '../gateway/plan-keeper.ts';
import type { JobKind } from '../ports/telemetry.ts';
import { FileBodyStore } from '../adapters/storage/file-body-store.ts';
import { loadSeal } from '../adapters/storage/seal.ts';
import type { ProcessTelemetry } from '../adapters/telemetry/telemetry.ts';
import type { BerthConfig } from '../config/load.ts';
import { createScorerDuties } from '../gateway/scorer-duties.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';
import type { RunningProcess } from './running-process.ts';
import { filmService } from './films-wiring.ts';
import { publishMetrics } from './publish-metrics.ts';
import { startWebhooks } from './webhooks.ts';

/** How often what is due and jobs of dead ingresses are looked for, in ms. */
const WATCH_MS = 500;
/** How long the journal is left to gather before it is read on, in ms: the plan need not be newer, and the worker wants the cores. */
const FOLLOW_PAUSE_MS = 100;

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
  const scripts = new Scripts(redis);
  const care = new QueueCare(redis, keys, clock);
  const status = new PoolStatus(redis, keys);
  const onError = (err: Error): void => telemetry.log.warn({ err }, 'scorer.error');
  const durations = new RedisDurationBook({ redis, keys, guesses: config.durations, onError });
  await durations.start();
  const mirror: LedgerMirror = new LedgerMirror({
    redis,
    blocking: connectRedis(config.redis.url, 'blocking', (err) =>
      telemetry.log.debug({ err }, 'redis.error'),
    ),
    keys,
    rules: config.rules,
    onEvent: ({ kind, job, atMs }) => {
      if (kind === 'dispatch') keeper.started(job.id, atMs);
    },
    pause: async () => sleep(FOLLOW_PAUSE_MS),
    onChange: () => keeper.changed(),
    onError,
  });
  const keeper = new PlanKeeper({
    ledger: () => mirror.ledger,
    version: () => mirror.token,
    residentModel: async () => status.resident(),
    duration: ({ model, work }, cold) =>
      durations.estimateOf(model, work?.route ?? '', (work?.kind ?? 'other') as JobKind, cold),
    nowMs: async () => status.nowMs(),
    publish: async (view) => status.publishPlan(JSON.stringify(view)),
    telemetry,
    onError,
  });
  await mirror.start();
  const store = await FileBodyStore.open(config.dataDir);
  const seal = await loadSeal(config.dataDir, config.sealingSecret ?? undefined);
  const films = filmService(config, redis, keys, store, seal);
  const duties = createScorerDuties({
    care,
    reconcile: async () => {
      await mirror.check();
      return reconcile({ redis, scripts, keys }, mirror.ledger);
    },
    plan: async () => keeper.plan(),
    films: async () => {
      for (const filmId of await films.repair()) telemetry.filmRepaired({ filmId });
    },
    store,
    telemetry,
    memory: () => readRedisHealth(redis),
    admitBelowFraction: config.memory.admitBelowFraction,
    graceMs: config.idempotency.graceSeconds * 1000,
  });
  await duties.pass();
  const repeating = new RepeatingDuties({
    redis,
    keys,
    duties: [
      { name: 'pass', everyMs: config.scorer.intervalSeconds * 1000, run: duties.pass },
      { name: 'watch', everyMs: WATCH_MS, run: duties.watch },
    ],
    onError,
  });
  await repeating.start();
  const webhooks = await startWebhooks({ redis, keys, config, telemetry, onError });
  const publishing = publishMetrics(telemetry, status, 'scorer');
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
      await Promise.all([repeating.stop(2000), webhooks.stop(2000)]);
      keeper.stop();
      durations.close();
      await mirror.stop();
      redis.disconnect();
    },
  };
}
