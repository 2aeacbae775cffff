import type { Redis } from 'ioredis';
import type { JobEvent } from '../../ports/job-queue.ts';
import type { LogBatch, LogCursor, ResponseLogReader } from '../../ports/response-log.ts';
import type { PoolKeys } from './keys.ts';
import { parseEntry } from './response-log-format.ts';
import type { RawEntry } from './response-log-format.ts';

const BLOCK_MS = 1000;
/** A blocking read that is silent for longer hangs on a dead connection. */
const HUNG_AFTER_MS = 4000;

interface Reader {
  cursor: string;
  resolve: (batch: LogBatch) => void;
}

/** What the feed reads from. */
export interface RedisJobFeedOptions {
  /** A `blocking` connection of the feed's own. */
  blocking: Redis;
  /** Any other connection, to interrupt a blocked read. */
  redis: Redis;
  keys: PoolKeys;
  ingressId: string;
  onError: (error: Error) => void;
}

/**
 * One blocking read for everything an ingress follows: the control stream, and the logs of those of its jobs that
 * run. Only readers that ask are served, so a slow client costs no memory; one that asks while a read is blocked
 * interrupts it through a stream of its own, which, having a cursor, cannot be missed.
 */
export class RedisJobFeed implements ResponseLogReader {
  private readonly options: RedisJobFeedOptions;
  private readonly readers = new Map<string, Reader>();
  private readonly listeners = new Map<string, (event: JobEvent) => void>();
  private controlCursor = '0-0';
  private pokeCursor = '0-0';
  private blocked = false;
  private stopped = false;
  private loop: Promise<void> | undefined;

  constructor(options: RedisJobFeedOptions) {
    this.options = options;
  }

  /** Events from now on reach their listeners. */
  async start(): Promise<void> {
    const last = await this.options.redis.xrevrange(
      this.options.keys.control,
      '+',
      '-',
      'COUNT',
      1,
    );
    this.controlCursor = last[0]?.[0] ?? '0-0';
    this.loop = this.run();
  }

  /** Ends the feed; waiting readers never hear again. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.options.blocking.disconnect();
    await this.loop;
  }

  /** Hears of one job until `unlisten`. */
  listen(jobId: string, listener: (event: JobEvent) => void): void {
    this.listeners.set(jobId, listener);
  }

  /** Stops hearing of a job and forgets its reader. */
  unlisten(jobId: string): void {
    this.listeners.delete(jobId);
    this.readers.delete(jobId);
  }

  async next(jobId: string, cursor: LogCursor | undefined, signal: AbortSignal): Promise<LogBatch> {
    signal.throwIfAborted();
    return new Promise<LogBatch>((resolve, reject) => {
      const onAbort = (): void => {
        this.readers.delete(jobId);
        reject(signal.reason instanceof Error ? signal.reason : new Error('reading was given up'));
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.readers.set(jobId, {
        cursor: cursor ?? '0-0',
        resolve: (batch) => {
          signal.removeEventListener('abort', onAbort);
          resolve(batch);
        },
      });
      if (this.blocked) this.poke();
    });
  }

  private poke(): void {
    const { redis, keys, ingressId } = this.options;
    const key = keys.poke(ingressId);
    // Without it the read returns by itself within its block time.
    redis
      .multi()
      .xadd(key, 'MAXLEN', 1, '*', 'p', '1')
      .pexpire(key, 60_000)
      .exec()
      .catch(() => undefined);
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      try {
        await this.readOnce();
        // Readers that were just served ask again in this turn, and are part of the next read.
        await new Promise<void>((resolve) => setImmediate(resolve));
      } catch (error) {
        if (this.isStopped()) return;
        this.options.onError(error instanceof Error ? error : new Error(String(error)));
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  private isStopped(): boolean {
    return this.stopped;
  }

  private async readOnce(): Promise<void> {
    const { blocking, keys, ingressId } = this.options;
    const followed = [...this.readers.keys()];
    const streams = [keys.control, keys.poke(ingressId), ...followed.map((id) => keys.log(id))];
    const cursors = [
      this.controlCursor,
      this.pokeCursor,
      ...followed.map((id) => this.readers.get(id)?.cursor ?? '0-0'),
    ];
    const hung = setTimeout(() => blocking.disconnect(true), HUNG_AFTER_MS);
    this.blocked = true;
    try {
      const reply = await blocking.xreadBuffer(
        'COUNT',
        256,
        'BLOCK',
        BLOCK_MS,
        'STREAMS',
        ...streams,
        ...cursors,
      );
      this.blocked = false;
      for (const [key, entries] of reply ?? []) this.deliver(key.toString(), entries, followed);
    } finally {
      this.blocked = false;
      clearTimeout(hung);
    }
  }

  private deliver(key: string, entries: RawEntry[], followed: string[]): void {
    const { keys, ingressId } = this.options;
    const last = entries.at(-1)?.[0].toString();
    if (last === undefined) return;
    if (key === keys.control) {
      this.controlCursor = last;
      for (const [, fields] of entries) this.announce(fields);
    } else if (key === keys.poke(ingressId)) {
      this.pokeCursor = last;
    } else {
      const jobId = followed.find((id) => keys.log(id) === key);
      const reader = jobId === undefined ? undefined : this.readers.get(jobId);
      if (jobId === undefined || reader === undefined) return;
      this.readers.delete(jobId);
      reader.resolve({ entries: entries.map(parseEntry), cursor: last as LogCursor });
    }
  }

  private announce(fields: Buffer[]): void {
    const [, kind, , jobId, , detail] = fields.map(String);
    if (kind !== 'start' && kind !== 'wait' && kind !== 'end') return;
    this.listeners.get(jobId ?? '')?.({ kind, jobId: jobId ?? '', detail: detail ?? '' });
  }
}
