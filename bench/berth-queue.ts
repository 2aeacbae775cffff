import { createHash, randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { BullJobQueue } from '../src/adapters/redis/bull-job-queue.ts';
import { connectRedis, whenReady } from '../src/adapters/redis/connection.ts';
import { poolKeys } from '../src/adapters/redis/keys.ts';
import { loadSeal } from '../src/adapters/storage/seal.ts';
import type { Seal } from '../src/adapters/storage/seal.ts';
import { nearestBand } from '../src/policy/band.ts';
import { defaultRules } from '../src/policy/rules.ts';
import type { JobFacts } from '../src/ports/job-queue.ts';
import { timeAcceptance } from './acceptance.ts';
import type { JobMix, MeasuredQueue } from './measured-queue.ts';
import { benchJob, jobHeaders, UNIFORM } from './measured-queue.ts';
import { CHAT } from './model-server.ts';

const SAME = {
  version: 1,
  method: 'POST',
  route: CHAT,
  kind: 'text',
  stream: false,
  mode: 'async',
} as const satisfies Partial<JobFacts>;

/** Berth's queue as an ingress fills it, sealing included; async jobs, so that no connection has to wait. */
export class BerthQueue implements MeasuredQueue {
  readonly lane = 'berth';
  private readonly redis: Redis;
  private readonly queue: BullJobQueue;
  private readonly seal: Seal;
  private readonly mix: JobMix;
  private count = 0;

  private constructor(redis: Redis, seal: Seal, mix: JobMix) {
    this.redis = redis;
    this.seal = seal;
    this.mix = mix;
    this.queue = new BullJobQueue({
      redis,
      keys: poolKeys('gpu'),
      ingressId: randomUUID(),
      waitingCap: 1_000_000,
      maxAttempts: 3,
      keep: { graceMs: 60_000, keyMs: 60_000, syncMs: 60_000, asyncMs: 60_000 },
    });
  }

  /** `dataDir`: the running processes', for their sealing key. */
  static async open(redisUrl: string, dataDir: string, mix: JobMix = UNIFORM): Promise<BerthQueue> {
    const redis = connectRedis(redisUrl, 'prompt', () => undefined);
    await whenReady(redis, 5000);
    return new BerthQueue(redis, await loadSeal(dataDir, undefined), mix);
  }

  async submit(): Promise<void> {
    this.count += 1;
    const id = randomUUID();
    const { member, tier, model, points, body: text } = benchJob(this.count, this.mix);
    const body = Buffer.from(text);
    const head = { method: 'POST', target: CHAT, headers: jobHeaders(this.lane, model) };
    await this.queue.submit({
      id,
      facts: {
        ...SAME,
        model,
        member,
        tier,
        base: points,
        band: nearestBand(points, defaultRules),
        bodyBytes: body.length,
        bodySha256: createHash('sha256').update(body).digest('hex'),
      },
      points,
      sealedHead: this.seal.close(id, Buffer.from(JSON.stringify(head))),
      body,
      caps: { waiting: null, bytes: null },
    });
  }

  async fill(count: number): Promise<void> {
    await timeAcceptance(this, count, 256);
  }

  async waiting(): Promise<number> {
    return this.redis.zcard(`${poolKeys('gpu').queue}prioritized`);
  }

  async close(): Promise<void> {
    await this.queue.close();
    this.redis.disconnect();
  }
}
