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
  jobId: string;
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
  private readonly readers = new Set<Reader>();
  private readonly listeners = new Map<string, Set<(event: JobEvent) => void>>();
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

  /** Hears of one job until `unlisten` with the same listener. */
  listen(jobId: string, listener: (event: JobEvent) => void): void {
    const listeners = this.listeners.get(jobId) ?? new Set();
    this.listeners.set(jobId, listeners.add(listener));
  }

  /** This listener hears of the job no more. */
  unlisten(jobId: string, listener: (event: JobEvent) => void): void {
    const listeners = this.listeners.get(jobId);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.listeners.delete(jobId);
  }

  placeAt(run: number, offset: number): LogCursor {
    return `${run}-${offset}` as LogCursor;
  }

  async next(jobId: string, cursor: LogCursor | undefined, signal: AbortSignal): Promise<LogBatch> {
    signal.throwIfAborted();
    return new Promise<LogBatch>((resolve, reject) => {
      const onAbort = (): void => {
        this.readers.delete(reader);
        reject(signal.reason instanceof Error ? signal.reason : new Error('reading was given up'));
      };
      const reader: Reader = {
        jobId,
        cursor: cursor ?? '0-0',
        resolve: (batch) => {
          signal.removeEventListener('abort', onAbort);
          resolve(batch);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.readers.add(reader);
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
    const followed = this.earliest();
    const logs = [...followed.keys()].map((id) => keys.log(id));
    const streams = [keys.control, keys.poke(ingressId), ...logs];
    const cursors = [this.controlCursor, this.pokeCursor, ...followed.values()];
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
      for (const [key, entries] of reply ?? []) this.deliver(key.toString(), entries);
    } finally {
      this.blocked = false;
      clearTimeout(hung);
    }
  }

  /** Each log that is asked for, with the earliest place it is asked for from. */
  private earliest(): Map<string, string> {
    const cursors = new Map<string, string>();
    for (const { jobId, cursor } of this.readers) {
      const other = cursors.get(jobId);
      if (other === undefined || isAfter(other, cursor)) cursors.set(jobId, cursor);
    }
    return cursors;
  }

  private deliver(key: string, entries: RawEntry[]): void {
    const { keys, ingressId } = this.options;
    const last = entries.at(-1)?.[0].toString();
    if (last === undefined) return;
    if (key === keys.control) {
      this.controlCursor = last;
      for (const [, fields] of entries) this.announce(fields);
    } else if (key === keys.poke(ingressId)) {
      this.pokeCursor = last;
    } else {
      for (const reader of [...this.readers]) {
        if (keys.log(reader.jobId) !== key) continue;
        const news = entries.filter(([id]) => isAfter(id.toString(), reader.cursor));
        if (news.length === 0) continue;
        this.readers.delete(reader);
        reader.resolve({ entries: news.map(parseEntry), cursor: last as LogCursor });
      }
    }
  }

  private announce(fields: Buffer[]): void {
    const [, kind, , jobId, , detail] = fields.map(String);
    if (kind !== 'start' && kind !== 'wait' && kind !== 'end') return;
    const event = { kind, jobId: jobId ?? '', detail: detail ?? '' } as const;
    for (const listener of [...(this.listeners.get(event.jobId) ?? [])]) listener(event);
  }
}

/** Whether a stream id comes after another; sequences are larger than a number can tell apart. */
function isAfter(id: string, other: string): boolean {
  const [run, sequence] = id.split('-');
  const [otherRun, otherSequence] = other.split('-');
  if (run !== otherRun) return Number(run) > Number(otherRun);
  return BigInt(sequence ?? '0') > BigInt(otherSequence ?? '0');
}
