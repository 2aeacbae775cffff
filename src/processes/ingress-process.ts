import { randomUUID } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { announce } from '../adapters/process/lifecycle.ts';
import { BullJobQueue, unavailable } from '../adapters/redis/bull-job-queue.ts';
import { connectRedis } from '../adapters/redis/connection.ts';
import { IngressPresence } from '../adapters/redis/ingress-presence.ts';
import { ingressConnectionName } from '../adapters/redis/ingress-vouching.ts';
import { poolKeys } from '../adapters/redis/keys.ts';
import { PoolStatus } from '../adapters/redis/pool-status.ts';
import { RedisDispatchHistory } from '../adapters/redis/redis-dispatch-history.ts';
import { RedisJobFeed } from '../adapters/redis/redis-job-feed.ts';
import { RedisJobRecords } from '../adapters/redis/redis-job-records.ts';
import { checkLayout, readRedisHealth } from '../adapters/redis/redis-health.ts';
import { FileBodyStore } from '../adapters/storage/file-body-store.ts';
import { loadSeal } from '../adapters/storage/seal.ts';
import { mergeRegistries } from '../adapters/telemetry/merge-registries.ts';
import type { ProcessTelemetry } from '../adapters/telemetry/telemetry.ts';
import { HttpModelCatalogue } from '../adapters/upstream/http-model-catalogue.ts';
import { HttpModelServer } from '../adapters/upstream/http-model-server.ts';
import { HttpModelServerSockets } from '../adapters/upstream/http-model-server-sockets.ts';
import { deliveryQueue, shownDelivery } from '../adapters/redis/webhook-deliveries.ts';
import { webhookAddressFault } from '../adapters/webhooks/webhook-address.ts';
import { configPath } from '../config/load.ts';
import { policyHash } from '../config/policy-hash.ts';
import type { BerthConfig } from '../config/load.ts';
import { createIngress } from '../ingress/app.ts';
import { Gatekeeper } from '../ingress/gatekeeper.ts';
import { KeyRing } from '../ingress/key-ring.ts';
import { PublishedPlan } from '../ingress/published-plan.ts';
import { Bypass } from '../ingress/routes/bypass.ts';
import { PassThrough } from '../ingress/routes/pass-through.ts';
import { Proxy } from '../ingress/routes/proxy.ts';
import { UpgradeRoute } from '../ingress/routes/upgrade.ts';
import { UpstreamHeaders } from '../ingress/upstream-headers.ts';
import { AdmissionWatch } from './admission-watch.ts';
import { ingressFilms } from './films-wiring.ts';
import { watchKeys } from './key-watch.ts';
import { watchSockets } from './socket-watch.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';
import type { RunningProcess } from './running-process.ts';
import { publishMetrics } from './publish-metrics.ts';

const READY_LOOK_MS = 100;

/** Starts the HTTP side. Resolves when it listens; the supervisor hears when readyz is green. */
export async function startIngressProcess(
  config: BerthConfig,
  telemetry: ProcessTelemetry,
): Promise<RunningProcess> {
  const { url, apiKey } = config.modelServer;
  if (url === null || config.redis.url === null) {
    throw new StartRefused(
      'the ingress needs MODEL_SERVER_URL and REDIS_URL; `npm start` sets both up',
    );
  }
  const { log } = telemetry;
  const onRedisError = (err: Error): void => log.debug({ err }, 'redis.error');
  const redisUrl = config.redis.url;
  const ingressId = randomUUID();
  const redis = connectRedis(redisUrl, 'prompt', onRedisError, ingressConnectionName(ingressId));
  const patient = connectRedis(redisUrl, 'patient', onRedisError);
  const blocking = connectRedis(redisUrl, 'blocking', onRedisError);
  redis.on('ready', () => log.info({}, 'redis.connected'));
  let isStopping = false;
  redis.on('close', () => {
    if (!isStopping) log.warn({}, 'redis.lost');
  });
  const keys = poolKeys(config.pool);
  const keyRing = new KeyRing(config.keys);
  const keyFile = configPath();
  const keyWatch =
    keyFile === null
      ? undefined
      : watchKeys({ path: keyFile, keys: config.keys, ring: keyRing, log });
  const store = await FileBodyStore.open(config.dataDir);
  const seal = await loadSeal(config.dataDir, config.sealingSecret ?? undefined);
  const status = new PoolStatus(redis, keys);
  const admission = new AdmissionWatch({
    redis,
    health: async () => readRedisHealth(redis),
    status,
    store,
    telemetry,
    admitBelowFraction: config.memory.admitBelowFraction,
    scorerIntervalSeconds: config.scorer.intervalSeconds,
    policyHash: policyHash(config),
  });
  const deliveries = deliveryQueue(redis, keys);
  deliveries.on('error', onRedisError);
  const queue = new BullJobQueue({
    redis,
    keys,
    ingressId,
    waitingCap: config.caps.waiting,
    maxAttempts: config.attempts.maxAttempts,
    keep: {
      graceMs: config.idempotency.graceSeconds * 1000,
      keyMs: config.retention.idempotencySeconds * 1000,
      syncMs: config.retention.syncSeconds * 1000,
      asyncMs: config.retention.completedSeconds * 1000,
    },
  });
  const feed = new RedisJobFeed({
    blocking,
    redis: patient,
    keys,
    ingressId,
    onError: (err) => log.debug({ err }, 'feed.error'),
  });
  const presence = new IngressPresence(redis, keys, ingressId, async () => {
    await queue.settleDoubts();
  });

  const modelServer = new HttpModelServer({ url });
  const upstreamHeaders = new UpstreamHeaders(
    apiKey,
    () => !keyRing.isEmpty,
    config.http.trustProxyHops,
  );
  const catalogue = new HttpModelCatalogue(modelServer, upstreamHeaders.addedHeaders);
  const bypass = new Bypass({ catalogue, ...config.bypass });
  const records = new RedisJobRecords(redis, keys);
  const positions = new PublishedPlan(async () => status.plan());
  const reading = { reader: feed, inspect: async (ids: readonly string[]) => queue.inspect(ids) };
  const webhookFault = (address: string): string | undefined =>
    webhookAddressFault(address, config.webhooks.mayCallPrivate);
  const proxy = new Proxy({
    queue,
    records,
    rules: config.rules,
    seal: (jobId, plain) => seal.close(jobId, plain),
    webhookFault,
    telemetry,
    ...reading,
    store,
    catalogue,
    intake: { maxBytes: config.caps.bodyBytes, store, mayStore: () => admission.mayStore() },
    passThrough: new PassThrough(modelServer, upstreamHeaders),
    bypass,
    asyncUpstreams: config.asyncUpstreams,
    waiting: {
      style: {
        style: config.keepAlive.style,
        afterMs: config.keepAlive.afterSeconds * 1000,
        everyMs: config.keepAlive.everySeconds * 1000,
      },
      positions,
    },
    upstreamHeaders,
    refusal: () => admission.refusal(),
  });
  const upgrades = new UpgradeRoute({
    modelServer: new HttpModelServerSockets(url),
    catalogue,
    needsNoGpu: (model) => bypass.covers(model),
    headerRules: upstreamHeaders,
  });
  const giveWay = watchSockets({
    route: upgrades,
    catalogue,
    running: async () => status.runningModel(),
    log,
  });
  const films = ingressFilms({
    config,
    redis,
    keys,
    store,
    seal,
    catalogue,
    headerRules: upstreamHeaders,
    needsNoGpu: (model) => bypass.covers(model),
    webhookFault,
    positions,
    admission,
  });
  const stopping = new AbortController();
  const server = createIngress({
    proxy,
    films,
    upgrades,
    jobs: {
      ...reading,
      records,
      positions,
      store,
      telemetry,
      explaining: {
        rules: config.rules,
        plan: async () => positions.view(),
        history: new RedisDispatchHistory(redis, keys),
        nowMs: async () => {
          try {
            return await status.nowMs();
          } catch (error) {
            throw unavailable(error);
          }
        },
      },
      bands: Object.keys(config.rules.bands),
      everyMs: config.keepAlive.everySeconds * 1000,
      stopping: stopping.signal,
    },
    queues: [{ queue: queue.queue }, { queue: deliveries, shown: shownDelivery }],
    checks: async () => Promise.resolve(admission.checks()),
    plan: async () => status.plan(),
    metrics: async () => {
      telemetry.modelsListed({ modelIds: catalogue.modelIds });
      const others = (await status.registries().catch(() => [])).filter(
        ({ instance }) => instance !== String(process.pid),
      );
      return mergeRegistries([
        { process: 'ingress', json: await telemetry.exportRegistry() },
        ...others,
      ]);
    },
    telemetry,
    gatekeeper: new Gatekeeper({
      keys: keyRing,
      identity: {
        tiers: Object.keys(config.rules.tiers),
        caps: config.caps,
        onIgnored: (header) => telemetry.assertionIgnored({ header }),
      },
      allowOpen: config.http.isOpenAllowed,
    }),
    onError: (err) => log.error({ err }, 'request.failed'),
  });

  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? new StartRefused(`port ${config.http.port} of ${config.http.host} is in use`)
          : error,
      ),
    );
    server.listen(config.http.port, config.http.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  announce({ type: 'listening', port });
  log.info({ host: config.http.host, port }, 'ingress.listening');

  // Redis may come later than we do: clients get their 503 until then.
  const connected = (async () => {
    await checkLayout(patient);
    await feed.start();
    await presence.start().catch(() => undefined);
    await admission.start();
  })();
  connected.catch((err: unknown) => {
    log.error({ err }, 'ingress.cannot_start');
    process.exit(1);
  });
  const readiness = setInterval(() => {
    if (!admission.checks().every((check) => check.ok || check.isWarning === true)) return;
    clearInterval(readiness);
    announce({ type: 'ready' });
  }, READY_LOOK_MS);
  const publishing = publishMetrics(telemetry, status, 'ingress');

  return {
    stop: async () => {
      isStopping = true;
      stopping.abort();
      admission.close();
      clearInterval(readiness);
      clearInterval(publishing);
      keyWatch?.end();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      bypass.close();
      clearInterval(giveWay);
      upgrades.close();
      films.close();
      proxy.stopWaiting('waiting');
      server.closeIdleConnections();
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>(
        (resolve) => (timer = setTimeout(resolve, config.shutdown.graceSeconds * 1000 - 200)),
      );
      await Promise.race([closed, late]);
      clearTimeout(timer);
      proxy.stopWaiting('all');
      admission.stop();
      await presence.stop();
      await feed.stop();
      await Promise.all([queue.close(), deliveries.close()]);
      for (const connection of [redis, patient, blocking]) connection.disconnect();
      await modelServer.close();
    },
  };
}
