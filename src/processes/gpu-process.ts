import { randomUUID } from 'node:crypto';
import { acquireKernelLock, lockDomain } from '../adapters/process/kernel-lock.ts';
import { openSidePort } from '../adapters/process/side-port.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';
import { BullGpuWorker } from '../adapters/redis/bull-gpu-worker.ts';
import type { RunReport } from '../adapters/redis/bull-gpu-worker.ts';
import { connectRedis } from '../adapters/redis/connection.ts';
import { GpuOwner } from '../adapters/redis/gpu-owner.ts';
import { poolKeys } from '../adapters/redis/keys.ts';
import { RedisDispatchLog } from '../adapters/redis/redis-dispatch-log.ts';
import { RedisDurationBook } from '../adapters/redis/redis-duration-book.ts';
import { DispatchRecorder } from '../gateway/dispatch-recorder.ts';
import { PoolStatus } from '../adapters/redis/pool-status.ts';
import { RedisClock } from '../adapters/redis/redis-clock.ts';
import { checkLayout } from '../adapters/redis/redis-health.ts';
import { FileBodyStore } from '../adapters/storage/file-body-store.ts';
import { loadSeal } from '../adapters/storage/seal.ts';
import { HttpModelCatalogue } from '../adapters/upstream/http-model-catalogue.ts';
import { AroundWatch } from '../adapters/upstream/around-watch.ts';
import { ResidentModelWatch } from '../adapters/upstream/resident-model-watch.ts';
import { HttpModelServer } from '../adapters/upstream/http-model-server.ts';
import { policyHash } from '../config/policy-hash.ts';
import type { BerthConfig } from '../config/load.ts';
import type { ErrorCode, FailureCode } from '../errors.ts';
import { createAttendShot } from '../gateway/film-shot-run.ts';
import { createRunJob } from '../gateway/run-job.ts';
import { NO_MODEL } from '../ports/job-queue.ts';
import type { ClaimedJob } from '../ports/job-queue.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { ProcessTelemetry } from '../adapters/telemetry/telemetry.ts';
import type { RunningProcess } from './running-process.ts';
import { redisFilms, shotMaking } from './films-wiring.ts';
import { publishMetrics } from './publish-metrics.ts';

/** Starts the process that owns the GPU. Resolves when it takes jobs. */
export async function startGpuProcess(
  config: BerthConfig,
  telemetry: ProcessTelemetry,
): Promise<RunningProcess> {
  const { url } = config.modelServer;
  if (url === null || config.redis.url === null) {
    throw new StartRefused(
      'the worker needs MODEL_SERVER_URL and REDIS_URL; `npm start` sets both up',
    );
  }
  const { log } = telemetry;
  const modelServer = new HttpModelServer({ url });
  const lockName = `gpu:${config.pool}:${modelServer.origin}`;
  const lock = await acquireKernelLock(
    lockName,
    `worker ${config.worker.name}, pid ${process.pid}, pool ${config.pool}`,
  );
  if ('heldBy' in lock)
    throw new StartRefused(`the GPU of ${modelServer.origin} already has an owner: ${lock.heldBy}`);

  const redis = connectRedis(config.redis.url, 'patient', (err) =>
    log.debug({ err }, 'redis.error'),
  );
  const blocking = connectRedis(config.redis.url, 'blocking', (err) =>
    log.debug({ err }, 'redis.error'),
  );
  const keys = poolKeys(config.pool);
  const clock = new RedisClock();
  await checkLayout(redis);
  const onLost = (): void => {
    log.error({ pool: config.pool }, 'gpu.fenced');
    process.exit(1);
  };
  const owner = await GpuOwner.acquire({
    redis,
    keys,
    clock,
    name: config.worker.name,
    lock: lockName,
    domain: lockDomain(),
    onLost,
  });
  if ('heldBy' in owner)
    throw new StartRefused(`pool ${config.pool} already has an owner: ${owner.heldBy}`);
  owner.start();

  const store = await FileBodyStore.open(config.dataDir);
  const status = new PoolStatus(redis, keys);
  const marker = randomUUID();
  await store.writeMarker(marker);
  await status.publishStoreMarker(marker);
  const seal = await loadSeal(config.dataDir, config.sealingSecret ?? undefined);

  const { apiKey } = config.modelServer;
  const headers = apiKey === null ? [] : ['Authorization', `Bearer ${apiKey}`];
  const catalogue = new HttpModelCatalogue(modelServer, headers);
  const apart = (model: string): boolean =>
    catalogue.isPeer(model) ||
    config.bypass.models.some((id) => catalogue.resolve(id) === catalogue.resolve(model));
  const around = new AroundWatch(apart, (request) => telemetry.aroundSeen(request));
  const resident = new ResidentModelWatch({
    onData: (data) => around.read(data),
    server: modelServer,
    headers,
    catalogue,
    ignored: config.bypass.models,
  });
  await resident.start();
  const durations = new RedisDurationBook({
    redis,
    keys,
    guesses: config.durations,
    onError: (err) => log.debug({ err }, 'durations.error'),
  });
  let pickedWith: string | null = null;
  const recorder = new DispatchRecorder({
    residentModel: () => pickedWith,
    log: new RedisDispatchLog({ redis, keys, kept: config.retention.dispatchRecords }),
    telemetry,
  });
  const publishResident = (): void => {
    status.publishResident(resident.current()).catch(() => undefined);
  };
  resident.onChange(publishResident);
  resident.onSwap(({ model, swappedMs }) => {
    telemetry.modelSwapped({ model, swappedMs });
    recorder.loaded(model, swappedMs);
    void durations.recordLoad({ model, ms: swappedMs });
  });
  publishResident();
  await status.publishPolicyHash(policyHash(config));
  const coldRuns = new Set<string>();
  const worker: BullGpuWorker = new BullGpuWorker({
    redis,
    blocking,
    rules: config.rules,
    residentModel: () => (pickedWith = resident.current()),
    onEvent: (event, ledger) => recorder.before(event, ledger),
    loadedMs: (jobId) => recorder.loadedMs(jobId),
    onRebuilt: (waiting) => telemetry.ledgerRebuilt({ waiting }),
    onForced: () => telemetry.log.warn({}, 'pick.forced'),
    keys,
    clock,
    owner,
    store,
    run: createRunJob({
      modelServer,
      store,
      openSeal: (jobId, sealed) => seal.open(jobId, sealed),
      rules: config.attempts,
      asyncUpstreams: config.asyncUpstreams,
      keepWork: async (jobId, work) => worker.keepWork(jobId, work),
      chance: Math.random,
    }),
    attend: createAttendShot({
      ...shotMaking(config, store, seal),
      films: redisFilms(config, redis, keys),
    }),
    retention: {
      syncMs: config.retention.syncSeconds * 1000,
      completedMs: config.retention.completedSeconds * 1000,
      failedMs: config.retention.failedSeconds * 1000,
    },
    onDispatch: (job, idleMs) => {
      coldRuns.delete(job.id);
      if (!resident.isResident(job.facts.model)) coldRuns.add(job.id);
      if (job.facts.model !== NO_MODEL) resident.noteDispatched(job.facts.model);
      // Its dispatch was told of by the worker that submitted its work.
      if (job.taken !== undefined) {
        log.info({ jobId: job.id, ranMs: job.ranBeforeMs }, 'job.taken_up');
        return;
      }
      if (idleMs !== undefined) telemetry.gpuIdled({ idleMs });
      void listModel(catalogue, job.facts.model, telemetry);
      telemetry.jobDispatched({
        ...factOf(job),
        tier: job.facts.tier,
        attempt: job.attemptsMade + 1,
        waitedMs: job.waitedMs,
      });
    },
    onReport: (report) => {
      tell(report, telemetry);
      const cold = coldRuns.delete(report.job.id);
      if (report.result.kind === 'completed') {
        const { model, route, kind } = report.job.facts;
        void durations.record({ model, route, kind, cold, ms: report.ranMs });
      }
      const isOver = report.result.kind === 'completed' || report.result.kind === 'cancelled';
      if (isOver && report.job.body === null && report.job.facts.bodyBytes > 0)
        void store.remove(`${report.job.id}.request`);
    },
    onFenced: onLost,
    onError: (err) => log.warn({ err }, 'worker.error'),
  });
  const reclaimed = await worker.start();
  for (const jobId of reclaimed.back) telemetry.jobHandedBack({ jobId, because: 'orphaned' });
  for (const jobId of reclaimed.failed) log.warn({ jobId }, 'job.orphan_failed');
  const publishing = publishMetrics(telemetry, status, 'gpu');
  const side =
    config.worker.port === null
      ? undefined
      : await openSidePort({
          host: config.http.host,
          port: config.worker.port,
          fault: async () =>
            Promise.resolve(
              redis.status === 'ready' && worker.isRunning ? undefined : 'Redis is away',
            ),
          metrics: () => telemetry.exposition(),
        });

  return {
    stop: async () => {
      await worker.stop(config.shutdown.graceSeconds * 1000 - 300);
      clearInterval(publishing);
      side?.close();
      if (redis.status === 'ready') await owner.release().catch(() => undefined);
      await resident.close();
      redis.disconnect();
      await modelServer.close();
      await lock.release();
    },
  };
}

/** Lets the metrics of this process know a model they have not met; they call unlisted ones `other`. */
async function listModel(
  catalogue: HttpModelCatalogue,
  model: string,
  telemetry: Telemetry,
): Promise<void> {
  if (catalogue.modelIds.includes(model)) return;
  await catalogue.lookUp(model);
  telemetry.modelsListed({ modelIds: catalogue.modelIds });
}

const factOf = ({ id, facts }: ClaimedJob) => ({
  jobId: id,
  memberId: facts.member,
  band: facts.band,
  model: facts.model,
  kind: facts.kind,
});

function tell({ job, result, ranMs }: RunReport, telemetry: Telemetry): void {
  const attempt = job.attemptsMade + 1;
  if (result.kind === 'handed-back') {
    telemetry.jobHandedBack({ jobId: job.id, because: 'shutting_down', ranMs });
  } else if (result.kind === 'retry') {
    telemetry.jobRetried({
      ...factOf(job),
      attempt,
      ranMs,
      code: result.code as FailureCode,
      delayMs: result.delayMs,
    });
  } else {
    const why = result.kind === 'completed' ? {} : { code: result.code as ErrorCode };
    telemetry.jobSettled({
      ...factOf(job),
      outcome: result.kind,
      ...why,
      attempt,
      ranMs,
      waitedMs: job.waitedMs,
    });
  }
}
