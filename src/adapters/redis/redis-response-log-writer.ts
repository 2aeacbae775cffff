import type { BodyStore, BodyWriter } from '../../ports/body-store.ts';
import { FencedError } from '../../ports/response-log.ts';
import type { ResponseHead, ResponseLogWriter } from '../../ports/response-log.ts';
import type { PoolKeys } from './keys.ts';
import { bytesEntry, fileEntry, headEntry } from './response-log-format.ts';
import type { StoredEntry } from './response-log-format.ts';
import type { Scripts } from './scripts.ts';

/** Bytes gathered for one entry while another is on its way. */
const ENTRY_BYTES = 256 * 1024;
/** Unstored bytes above which the upstream is not read on. */
const HIGH_WATER_BYTES = 4 * 1024 * 1024;
/** Body bytes kept in Redis; what comes after goes to a file, and the log holds offsets. */
const REDIS_BYTES = 256 * 1024;

/** Where a run's log is written. */
export interface ResponseLogWriterOptions {
  /** On a `patient` connection: an outage delays the answer, it does not lose it. */
  scripts: Scripts;
  keys: PoolKeys;
  store: BodyStore;
  jobId: string;
  run: number;
  fence: string;
}

/**
 * Appends one run's answer to its log: at most one command on its way, everything that came meanwhile in the next.
 * States: writing -> drained (a tail of at most one entry is left for the settlement) | broken (fenced, or the
 * disk failed; the next call throws).
 */
export class RedisResponseLogWriter implements ResponseLogWriter {
  private readonly options: ResponseLogWriterOptions;
  private pendingHead: StoredEntry | undefined;
  private pending: Buffer[] = [];
  private pendingBytes = 0;
  private storedOffset = 0;
  private offset = 0;
  private flight: Promise<void> | undefined;
  private failure: unknown;
  /** A command that is to be sent at the end of this turn. */
  private scheduled: NodeJS.Immediate | undefined;
  private isDraining = false;
  private file: BodyWriter | undefined;

  constructor(options: ResponseLogWriterOptions) {
    this.options = options;
  }

  get bytes(): number {
    return this.offset;
  }

  /** Whether any part of the answer may already have been seen by a reader. */
  get begun(): boolean {
    return this.storedOffset > 0 || this.file !== undefined;
  }

  head(head: ResponseHead): void {
    this.pendingHead = headEntry(this.options.run, head);
    this.schedule();
  }

  async write(bytes: Buffer): Promise<void> {
    this.throwIfBroken();
    this.pending.push(bytes);
    this.pendingBytes += bytes.length;
    this.offset += bytes.length;
    this.schedule();
    while (this.pendingBytes > HIGH_WATER_BYTES) {
      if (this.flight === undefined) this.start();
      await this.flight;
      this.throwIfBroken();
    }
  }

  async drain(): Promise<void> {
    this.isDraining = true;
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    while (this.flight !== undefined || this.pendingBytes > ENTRY_BYTES || this.needsFile()) {
      if (this.flight === undefined) this.start();
      await this.flight;
      this.throwIfBroken();
    }
    await this.file?.sync();
    await this.file?.close();
  }

  /** The entries not stored yet, in order; call after `drain`. */
  tail(): StoredEntry[] {
    const entries: StoredEntry[] = this.pendingHead ? [this.pendingHead] : [];
    if (this.pendingBytes > 0)
      entries.push(bytesEntry(this.options.run, this.offset, Buffer.concat(this.pending)));
    return entries;
  }

  /** Closes the file of a run that ends without `drain`. */
  async discard(): Promise<void> {
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    await this.flight?.catch(() => undefined);
    await this.file?.close();
  }

  private needsFile(): boolean {
    return this.pendingBytes > 0 && (this.file !== undefined || this.offset > REDIS_BYTES);
  }

  /** Defers the command to the end of this turn, so that head and first piece travel together. */
  private schedule(): void {
    if (this.flight !== undefined || this.failure !== undefined) return;
    this.scheduled ??= setImmediate(() => {
      this.scheduled = undefined;
      if (this.flight === undefined) this.start();
    });
  }

  private start(): void {
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    this.flight = this.flush();
    this.keepFailure();
  }

  private keepFailure(): void {
    this.flight = this.flight?.then(
      () => {
        this.flight = undefined;
        if (!this.isDraining && (this.pendingHead !== undefined || this.pendingBytes > 0))
          this.start();
      },
      (error: unknown) => {
        this.flight = undefined;
        this.failure = error;
      },
    );
  }

  private async flush(): Promise<void> {
    const entries: StoredEntry[] = this.pendingHead ? [this.pendingHead] : [];
    this.pendingHead = undefined;
    const { pieces, bytes } = this.take();
    const end = this.storedOffset + bytes;
    if (bytes === 0) {
      await this.append(entries);
      return;
    }
    if (this.file !== undefined || end > REDIS_BYTES) {
      this.file ??= await this.openFile();
      await this.file.append(pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces));
      entries.push(fileEntry(this.options.run, end));
    } else {
      entries.push(bytesEntry(this.options.run, end, Buffer.concat(pieces)));
    }
    await this.append(entries);
    this.storedOffset = end;
    this.pendingBytes -= bytes;
  }

  private take(): { pieces: Buffer[]; bytes: number } {
    const limit = this.file === undefined ? ENTRY_BYTES : HIGH_WATER_BYTES;
    const pieces: Buffer[] = [];
    let bytes = 0;
    while (
      this.pending[0] !== undefined &&
      (bytes === 0 || bytes + this.pending[0].length <= limit)
    ) {
      const piece = this.pending.shift();
      if (piece === undefined) break;
      pieces.push(piece);
      bytes += piece.length;
    }
    return { pieces, bytes };
  }

  /** The file holds the whole body's numbering: bytes that went to Redis before it are left as a hole. */
  private async openFile(): Promise<BodyWriter> {
    return this.options.store.create(
      `${this.options.jobId}.${this.options.run}`,
      this.storedOffset,
    );
  }

  private async append(entries: StoredEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const { scripts, keys, jobId, fence } = this.options;
    const reply = await scripts.run('append', keys.pool, keys.log(jobId), fence, ...entries.flat());
    if (reply !== 'ok')
      throw new FencedError(`response log of ${jobId} belongs to a newer run (${String(reply)})`);
  }

  private throwIfBroken(): void {
    if (this.failure !== undefined) {
      throw this.failure instanceof Error ? this.failure : new Error('response log broken');
    }
  }
}
