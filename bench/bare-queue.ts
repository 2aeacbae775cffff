import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { endProgram, firstMessage, startProgram } from './berth-processes.ts';
import type { JobMix, MeasuredQueue } from './measured-queue.ts';
import { benchJob, jobHeaders, jobPriority, UNIFORM } from './measured-queue.ts';
import { CHAT } from './model-server.ts';

const QUEUE = 'bare';
const BULK = 1000;

/** What a bare job holds: the request itself, in clear. */
export interface BareJob {
  origin: string;
  path: string;
  headers: string[];
  body: string;
}

/** A plain BullMQ queue with a worker process of its own, on the Redis that Berth uses too. */
export class BareQueue implements MeasuredQueue {
  readonly lane = 'bare';
  private readonly queue: Queue<BareJob>;
  private readonly redis: Redis;
  private readonly worker: ChildProcess;
  private readonly origin: string;
  private readonly mix: JobMix;
  private count = 0;

  private constructor(redis: Redis, worker: ChildProcess, origin: string, mix: JobMix) {
    this.redis = redis;
    this.queue = new Queue<BareJob>(QUEUE, { connection: redis });
    this.worker = worker;
    this.origin = origin;
    this.mix = mix;
  }

  /** Resolves when its worker takes jobs. */
  static async start(
    socket: string,
    origin: string,
    dir: string,
    mix: JobMix = UNIFORM,
  ): Promise<BareQueue> {
    const worker = startProgram(
      ['--import', 'tsx', 'bench/bare-worker-process.ts', socket, QUEUE],
      { NODE_ENV: 'production' },
      path.join(dir, 'bare.log'),
    );
    await firstMessage(worker, 'ready');
    const redis = new Redis({ path: socket, maxRetriesPerRequest: null });
    return new BareQueue(redis, worker, origin, mix);
  }

  async submit(): Promise<void> {
    const { name, data, opts } = this.next();
    await this.queue.add(name, data, opts);
  }

  async fill(count: number): Promise<void> {
    for (let left = count; left > 0; left -= BULK)
      await this.queue.addBulk(Array.from({ length: Math.min(left, BULK) }, () => this.next()));
  }

  async waiting(): Promise<number> {
    return this.queue.getPrioritizedCount();
  }

  async stop(): Promise<void> {
    await this.queue.close();
    this.redis.disconnect();
    await endProgram(this.worker);
  }

  private next() {
    this.count += 1;
    const { points, model, body } = benchJob(this.count, this.mix);
    const headers = jobHeaders(this.lane, model);
    const data: BareJob = { origin: this.origin, path: CHAT, headers, body };
    return { name: 'chat', data, opts: { priority: jobPriority(points), removeOnComplete: true } };
  }
}
