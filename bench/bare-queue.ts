import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { endProgram, firstMessage, startProgram } from './berth-processes.ts';
import type { MeasuredQueue } from './measured-queue.ts';
import { JOB_BODY, jobHeaders, jobPriority } from './measured-queue.ts';
import { CHAT } from './model-server.ts';

const QUEUE = 'bare';

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
  private count = 0;

  private constructor(redis: Redis, worker: ChildProcess, origin: string) {
    this.redis = redis;
    this.queue = new Queue<BareJob>(QUEUE, { connection: redis });
    this.worker = worker;
    this.origin = origin;
  }

  /** Resolves when its worker takes jobs. */
  static async start(socket: string, origin: string, dir: string): Promise<BareQueue> {
    const worker = startProgram(
      ['--import', 'tsx', 'bench/bare-worker-process.ts', socket, QUEUE],
      { NODE_ENV: 'production' },
      path.join(dir, 'bare.log'),
    );
    await firstMessage(worker, 'ready');
    return new BareQueue(new Redis({ path: socket, maxRetriesPerRequest: null }), worker, origin);
  }

  async submit(): Promise<void> {
    this.count += 1;
    const job = { origin: this.origin, path: CHAT, headers: jobHeaders(this.lane), body: JOB_BODY };
    await this.queue.add('chat', job, {
      priority: jobPriority(this.count),
      removeOnComplete: true,
    });
  }

  async waiting(): Promise<number> {
    return this.queue.getPrioritizedCount();
  }

  async stop(): Promise<void> {
    await this.queue.close();
    this.redis.disconnect();
    await endProgram(this.worker);
  }
}
