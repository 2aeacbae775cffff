import { createHash, randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { BullJobQueue } from '../src/adapters/redis/bull-job-queue.ts';
import { connectRedis, whenReady } from '../src/adapters/redis/connection.ts';
import { poolKeys } from '../src/adapters/redis/keys.ts';
import { loadSeal } from '../src/adapters/storage/seal.ts';
import type { Seal } from '../src/adapters/storage/seal.ts';
import type { JobFacts } from '../src/ports/job-queue.ts';
import type { MeasuredQueue } from './measured-queue.ts';
import { JOB_BODY, jobHeaders, jobPoints } from './measured-queue.ts';
import { CHAT, MODEL } from './model-server.ts';

const BODY = Buffer.from(JOB_BODY);
const FACTS: JobFacts = {
  version: 1,
  method: 'POST',
  route: CHAT,
  kind: 'text',
  model: MODEL,
  stream: false,
  member: 'shared',
  tier: 'free',
  base: 0,
  band: 'normal',
  mode: 'async',
  bodyBytes: BODY.length,
  bodySha256: createHash('sha256').update(BODY).digest('hex'),
};

/** Berth's queue as an ingress fills it, sealing included; async jobs, so that no connection has to wait. */
export class BerthQueue implements MeasuredQueue {
  readonly lane = 'berth';
  private readonly redis: Redis;
  private readonly queue: BullJobQueue;
  private readonly seal: Seal;
  private count = 0;

  private constructor(redis: Redis, seal: Seal) {
    this.redis = redis;
    this.seal = seal;
    this.queue = new BullJobQueue({
      redis,
      keys: poolKeys('gpu'),
      ingressId: randomUUID(),
      waitingCap: 1_000_000,
      maxAttempts: 3,
    });
  }

  /** `dataDir`: the running processes', for their sealing key. */
  static async open(redisUrl: string, dataDir: string): Promise<BerthQueue> {
    const redis = connectRedis(redisUrl, 'prompt', () => undefined);
    await whenReady(redis, 5000);
    return new BerthQueue(redis, await loadSeal(dataDir, undefined));
  }

  async submit(): Promise<void> {
    this.count += 1;
    const id = randomUUID();
    const points = jobPoints(this.count);
    const head = { method: 'POST', target: CHAT, headers: jobHeaders(this.lane) };
    await this.queue.submit({
      id,
      facts: { ...FACTS, base: points },
      points,
      sealedHead: this.seal.close(id, Buffer.from(JSON.stringify(head))),
      body: BODY,
      caps: { waiting: null, bytes: null },
    });
  }

  async waiting(): Promise<number> {
    return this.redis.zcard(`${poolKeys('gpu').queue}prioritized`);
  }

  async close(): Promise<void> {
    await this.queue.close();
    this.redis.disconnect();
  }
}
