import { setTimeout as sleep } from 'node:timers/promises';
import { Queue, UnrecoverableError, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import type { EndedJob } from '../../ports/ended-job.ts';
import type { WebhookResult } from '../../ports/telemetry.ts';
import { BULL_STREAMS } from './bull-job-queue.ts';
import { WEBHOOK_QUEUE } from './keys.ts';
import type { PoolKeys } from './keys.ts';
import { eventIdOf, readEndedJob } from './webhook-outbox.ts';

/** Where deliveries are made. */
export interface WebhookDeliveriesOptions {
  /** A `patient` connection. */
  redis: Redis;
  keys: PoolKeys;
  /** Tells of one end once; never throws for what the other side did. */
  deliver: (job: EndedJob, at: { attempt: number; isLast: boolean }) => Promise<WebhookResult>;
  /** Attempts at one delivery, the first one included. */
  attempts: number;
  /** Wait before the second attempt, in ms; it doubles with every further one. */
  backoffMs: number;
  /** How long a delivery is left to a scorer that says nothing, in ms; longer than an attempt may take. */
  lockMs: number;
  onError: (error: Error) => void;
}

/** How often the outbox is looked into, in ms. */
const LOOK_MS = 250;
const PAGE = 100;
/** Deliveries under way at once: a receiver that is slow holds one of them for as long as an attempt may take. */
const AT_ONCE = 16;
/** How long a delivery is remembered, in s: longer than two scorers could be at one entry; those that were given up, to be looked at. */
const KEEP_DONE_SECONDS = 3600;
const KEEP_FAILED_SECONDS = 7 * 86_400;

/** What BullMQ keeps of a delivery. */
export interface DeliveryData {
  entry: string;
}

/** The queue of deliveries, to look at and to retry from. */
export function deliveryQueue(redis: Redis, keys: PoolKeys): Queue<DeliveryData> {
  return new Queue(WEBHOOK_QUEUE, {
    connection: redis,
    prefix: keys.pool,
    skipVersionCheck: true,
    streams: BULL_STREAMS,
  });
}

/** What an operator may see of a delivery: the end it tells of, not where to. */
export function shownDelivery({ entry }: DeliveryData): object {
  try {
    return { ...readEndedJob(entry), sealedAddress: undefined };
  } catch {
    return {};
  }
}

/**
 * A BullMQ queue of deliveries, filled from the outbox. An entry becomes a delivery first and leaves the outbox then;
 * the delivery's id is the event's, so that an entry that is read twice makes one. Retries are BullMQ's.
 */
export class WebhookDeliveries {
  private readonly options: WebhookDeliveriesOptions;
  private readonly queue: Queue<DeliveryData>;
  private readonly worker: Worker<DeliveryData>;
  private readonly stopping = new AbortController();
  private loop: Promise<void> | undefined;

  constructor(options: WebhookDeliveriesOptions) {
    this.options = options;
    const shared = { connection: options.redis, prefix: options.keys.pool, skipVersionCheck: true };
    this.queue = deliveryQueue(options.redis, options.keys);
    this.worker = new Worker<DeliveryData>(
      WEBHOOK_QUEUE,
      async (job) => {
        const attempt = job.attemptsMade + 1;
        const isLast = attempt >= (job.opts.attempts ?? options.attempts);
        const result = await options.deliver(readEndedJob(job.data.entry), { attempt, isLast });
        if (result === 'retried') throw new Error('not delivered yet');
        if (result === 'given_up') throw new UnrecoverableError('given up');
      },
      {
        ...shared,
        autorun: false,
        concurrency: AT_ONCE,
        lockDuration: options.lockMs,
        stalledInterval: options.lockMs,
        // A process that died in the middle of an attempt has not used it up: the receiver knows a repeat by its id.
        maxStalledCount: 100,
        drainDelay: 1,
        runRetryDelay: 500,
      },
    );
    this.queue.on('error', (error) => options.onError(error));
    this.worker.on('error', (error) => options.onError(error));
  }

  /** Begins to read the outbox and to deliver. */
  start(): void {
    const { onError } = this.options;
    void this.worker.run().catch((error: unknown) => onError(asError(error)));
    this.loop = this.readOn();
  }

  /** Ends after the attempts under way, or after `withinMs`: BullMQ repeats those then. */
  async stop(withinMs: number): Promise<void> {
    this.stopping.abort();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, withinMs)));
    const ended = Promise.all([this.loop, this.worker.close()]).then(async () =>
      this.queue.close(),
    );
    await Promise.race([ended, late]);
    clearTimeout(timer);
  }

  private async readOn(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      let read = 0;
      try {
        read = await this.empty();
      } catch (error) {
        this.options.onError(asError(error));
      }
      if (read < PAGE)
        await sleep(LOOK_MS, undefined, { signal: this.stopping.signal }).catch(() => undefined);
    }
  }

  /** Turns a page of entries into deliveries; returns how many it read. */
  private async empty(): Promise<number> {
    const { redis, keys, attempts, backoffMs } = this.options;
    const entries = await redis.lrange(keys.outbox, 0, PAGE - 1);
    if (entries.length === 0) return 0;
    const opts = {
      attempts,
      backoff: { type: 'exponential', delay: backoffMs, jitter: 0.2 },
      removeOnComplete: { age: KEEP_DONE_SECONDS, count: 1000 },
      removeOnFail: { age: KEEP_FAILED_SECONDS, count: 1000 },
      stackTraceLimit: 0,
    };
    await this.queue.addBulk(
      entries.flatMap((entry) => {
        const jobId = eventIdOf(entry);
        return jobId === undefined
          ? []
          : [{ name: 'delivery', data: { entry }, opts: { ...opts, jobId } }];
      }),
    );
    const pipeline = redis.pipeline();
    for (const entry of entries) pipeline.lrem(keys.outbox, 1, entry);
    await pipeline.exec();
    return entries.length;
  }
}

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error(String(error));
