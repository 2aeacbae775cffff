import { Queue, Worker } from 'bullmq';
import type { Redis } from 'ioredis';
import { BULL_STREAMS } from './bull-job-queue.ts';
import { SCORER_QUEUE } from './keys.ts';
import type { PoolKeys } from './keys.ts';

/** Work that comes round by itself. */
export interface Duty {
  name: string;
  everyMs: number;
  run: () => Promise<void>;
}

/** Where duties run. */
export interface RepeatingDutiesOptions {
  /** A `patient` connection. */
  redis: Redis;
  keys: PoolKeys;
  duties: readonly Duty[];
  onError: (error: Error) => void;
}

/** How often it is checked that every schedule still lives, in ms. */
const CHECK_MS = 30_000;

/**
 * Repeating BullMQ jobs on the scorer's queue: visible on the board, and run once however many scorers there are.
 * A schedule whose next run is overdue, which outages have caused in the field, is written anew.
 */
export class RepeatingDuties {
  readonly queue: Queue;
  private readonly options: RepeatingDutiesOptions;
  private readonly worker: Worker;
  private check: NodeJS.Timeout | undefined;

  constructor(options: RepeatingDutiesOptions) {
    this.options = options;
    const shared = { connection: options.redis, prefix: options.keys.pool, skipVersionCheck: true };
    this.queue = new Queue(SCORER_QUEUE, { ...shared, streams: BULL_STREAMS });
    this.worker = new Worker(
      SCORER_QUEUE,
      async (job) => {
        const duty = options.duties.find(({ name }) => name === job.name);
        await duty?.run();
      },
      {
        ...shared,
        autorun: false,
        concurrency: 1,
        lockDuration: 30_000,
        drainDelay: 1,
        runRetryDelay: 500,
      },
    );
    this.queue.on('error', (error) => options.onError(error));
    this.worker.on('error', (error) => options.onError(error));
    this.worker.on('failed', (_job, error) => options.onError(error));
  }

  /** Writes the schedules, drops those of duties that are no more, and begins. */
  async start(): Promise<void> {
    const known = new Set(this.options.duties.map(({ name }) => name));
    for (const { key } of await this.queue.getJobSchedulers()) {
      if (!known.has(key)) await this.queue.removeJobScheduler(key);
    }
    for (const duty of this.options.duties) await this.schedule(duty);
    void this.worker.run().catch((error: unknown) => this.options.onError(asError(error)));
    this.check = setInterval(() => void this.reviveOverdue(), CHECK_MS);
  }

  /** Ends after the duty that runs now, or after `withinMs`. */
  async stop(withinMs: number): Promise<void> {
    clearInterval(this.check);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, withinMs)));
    await Promise.race([Promise.all([this.worker.close(), this.queue.close()]), late]);
    clearTimeout(timer);
  }

  private async schedule({ name, everyMs }: Duty): Promise<void> {
    await this.queue.upsertJobScheduler(
      name,
      { every: everyMs },
      {
        name,
        data: {},
        opts: { removeOnComplete: true, removeOnFail: { count: 20 }, priority: 1 },
      },
    );
  }

  private async reviveOverdue(): Promise<void> {
    try {
      for (const duty of this.options.duties) {
        const scheduler = await this.queue.getJobScheduler(duty.name);
        const overdueMs = Date.now() - (scheduler?.next ?? 0);
        if (overdueMs > Math.max(CHECK_MS, duty.everyMs * 3)) await this.schedule(duty);
      }
    } catch (error) {
      this.options.onError(asError(error));
    }
  }
}

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error(String(error));
