import type { connectRedis } from '../adapters/redis/connection.ts';
import type { PoolKeys } from '../adapters/redis/keys.ts';
import { WebhookDeliveries } from '../adapters/redis/webhook-deliveries.ts';
import { loadSeal, loadWebhookSecret } from '../adapters/storage/seal.ts';
import { HttpWebhookSender } from '../adapters/webhooks/http-webhook-sender.ts';
import type { BerthConfig } from '../config/load.ts';
import { addressSealOf, deliverWebhook } from '../gateway/deliver-webhook.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** Waits of 10 s, 20 s, 40 s and so on between twelve attempts: the last comes well over five hours after the first. */
const ATTEMPTS = 12;
const BACKOFF_MS = 10_000;
const TIMEOUT_MS = 15_000;
const LOCK_MS = 2 * TIMEOUT_MS;

/** What telling of ends runs on. */
interface Surroundings {
  redis: ReturnType<typeof connectRedis>;
  keys: PoolKeys;
  config: Pick<BerthConfig, 'dataDir' | 'sealingSecret' | 'webhooks'>;
  telemetry: Telemetry;
  onError: (error: Error) => void;
}

/** Begins to tell of ends; `stop` of what it returns waits for the attempts under way. */
export async function startWebhooks({
  redis,
  keys,
  config,
  telemetry,
  onError,
}: Surroundings): Promise<WebhookDeliveries> {
  const { dataDir, sealingSecret } = config;
  const seal = await loadSeal(dataDir, sealingSecret ?? undefined);
  const sender = new HttpWebhookSender({
    secret: await loadWebhookSecret(dataDir, sealingSecret ?? undefined),
    mayCallPrivate: config.webhooks.mayCallPrivate,
    timeoutMs: TIMEOUT_MS,
  });
  const openAddress = (jobId: string, sealed: Buffer): string =>
    seal.open(addressSealOf(jobId), sealed).toString();
  const deliveries = new WebhookDeliveries({
    redis,
    keys,
    attempts: ATTEMPTS,
    backoffMs: BACKOFF_MS,
    lockMs: LOCK_MS,
    deliver: async (job, at) => deliverWebhook(job, at, { sender, openAddress, telemetry }),
    onError,
  });
  deliveries.start();
  return deliveries;
}
