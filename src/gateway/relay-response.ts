import type { ErrorCode } from '../errors.ts';
import type { BodyStore } from '../ports/body-store.ts';
import type { JobEvent, JobPlace } from '../ports/job-queue.ts';
import type {
  LogBatch,
  LogCursor,
  LogEntry,
  ResponseHead,
  ResponseLogReader,
} from '../ports/response-log.ts';

/** The client's end. Calls are ordered; none follows `end` or `fail`. */
export interface ResponseSink {
  /** A head was read, and will come unless the attempt is repeated. */
  expect(head: ResponseHead): void;
  /** Comes right before the first piece, or before `end` of an empty body. */
  head(head: ResponseHead): void;
  /** Resolves when the client can take more. */
  write(bytes: Buffer): Promise<void>;
  end(): void;
  /** The answer will not come, or broke off after `headSent`: never a clean-looking end. */
  fail(code: ErrorCode, message: string): void;
}

/** What relaying needs. */
export interface RelayDependencies {
  reader: ResponseLogReader & {
    listen(jobId: string, listener: (event: JobEvent) => void): void;
    unlisten(jobId: string, listener: (event: JobEvent) => void): void;
  };
  inspect: (jobIds: readonly string[]) => Promise<JobPlace[]>;
  store: BodyStore;
}

/** How often the queue is asked about a silent job, in ms: events may be missed. */
const CHECK_MS = 2000;

class AnswerMissing extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Where in a job's life a relay begins. */
export interface RelayOptions {
  /** Body bytes that the client has already. */
  fromByte?: number;
}

/**
 * A job as its client waits for it. Make it before the submission, so that no event is missed; one that was made later
 * asks the queue first.
 */
export class ResponseRelay {
  private readonly jobId: string;
  private readonly dependencies: RelayDependencies;
  private readonly fromByte: number;
  private readonly listener = (event: JobEvent): void => this.hear(event);
  private readonly missing = new AbortController();
  /** When the worker was heard to begin, by performance.now(). */
  startedAt: number | undefined;
  private started: () => void = () => undefined;
  private readonly start = new Promise<void>((resolve) => {
    this.started = (): void => {
      this.startedAt ??= performance.now();
      resolve();
    };
  });
  private check: NodeJS.Timeout | undefined;
  private suspicious = 0;
  private isPassing = false;
  private run = 0;
  private sentBytes = 0;
  private hasSent = false;
  private pendingHead: ResponseHead | undefined;
  private headSent = false;

  constructor(jobId: string, dependencies: RelayDependencies, { fromByte = 0 }: RelayOptions = {}) {
    this.jobId = jobId;
    this.dependencies = dependencies;
    this.fromByte = fromByte;
    dependencies.reader.listen(jobId, this.listener);
  }

  /** Stops listening; for a job that was never submitted. */
  close(): void {
    clearInterval(this.check);
    this.dependencies.reader.unlisten(this.jobId, this.listener);
  }

  /**
   * Relays until the answer's end; rejects only with the signal's reason when the client has gone. `isLate`: the job may
   * have begun, or ended, before the relay was made.
   */
  async relay(sink: ResponseSink, signal: AbortSignal, isLate = false): Promise<void> {
    if (isLate) void this.inspect();
    this.check = setInterval(() => void this.inspect(), CHECK_MS);
    const either = AbortSignal.any([signal, this.missing.signal]);
    try {
      await raceAbort(this.start, either);
      let cursor: LogCursor | undefined;
      for (;;) {
        const batch = await this.dependencies.reader.next(this.jobId, cursor, either);
        cursor = this.skipped(batch);
        this.isPassing = true;
        for (const entry of batch.entries) if (await this.pass(entry, sink, signal)) return;
        this.isPassing = false;
      }
    } catch (error) {
      if (signal.aborted) throw error;
      if (error instanceof AnswerMissing) sink.fail(error.code, error.message);
      else sink.fail('internal_error', 'the answer could not be read');
    } finally {
      this.close();
    }
  }

  /** Where to read on: not through all that the client has already. */
  private skipped({ entries, cursor }: LogBatch): LogCursor {
    const last = entries.at(-1);
    if (this.fromByte === 0 || last?.kind !== 'head') return cursor;
    return this.dependencies.reader.placeAt(last.run, this.fromByte);
  }

  private hear(event: JobEvent): void {
    if (event.kind === 'start') this.started();
    if (event.kind === 'end') {
      this.started();
      // An evicted job leaves no log; a forgotten one neither.
      if (event.detail.startsWith('evicted')) {
        this.lose(
          event.detail.endsWith('cancelled')
            ? new AnswerMissing('cancelled', 'the job was cancelled')
            : new AnswerMissing(
                'redis_unavailable',
                'the job was given up while the gateway was not heard of',
              ),
        );
      }
    }
  }

  private lose(why: AnswerMissing): void {
    this.missing.abort(why);
  }

  /** Twice ended or gone without an end in the log means that there will be none. */
  private async inspect(): Promise<void> {
    const [place] = await this.dependencies.inspect([this.jobId]).catch(() => ['waiting' as const]);
    if (place === 'running') this.started();
    if (place !== 'ended' && place !== 'absent') {
      this.suspicious = 0;
      return;
    }
    this.started();
    // A slow client may take its time with what was read long ago.
    if (this.isPassing) return;
    this.suspicious += 1;
    if (this.suspicious > 1) this.lose(new AnswerMissing('internal_error', 'the job was lost'));
  }

  /** True when this entry was the answer's end. */
  private async pass(entry: LogEntry, sink: ResponseSink, signal: AbortSignal): Promise<boolean> {
    this.suspicious = 0;
    switch (entry.kind) {
      case 'head':
        if (entry.run > this.run && this.hasSent) {
          this.run = entry.run;
          if (entry.head.repeats === true) return false;
          sink.fail('internal_error', 'the answer broke off and began anew');
          return true;
        }
        this.run = entry.run;
        this.sentBytes = this.fromByte;
        this.pendingHead = entry.head;
        sink.expect(entry.head);
        return false;
      case 'bytes': {
        this.sendHead(sink);
        const fresh = entry.endOffset - this.sentBytes;
        if (fresh <= 0) return false;
        if (fresh > entry.bytes.length) throw new Error('the log has a hole');
        this.sentBytes = entry.endOffset;
        this.hasSent = true;
        await sink.write(entry.bytes.subarray(entry.bytes.length - fresh));
        return false;
      }
      case 'file': {
        this.sendHead(sink);
        if (entry.endOffset <= this.sentBytes) return false;
        const name = `${this.jobId}.${entry.run}`;
        const pieces = this.dependencies.store.read(name, this.sentBytes, entry.endOffset);
        this.hasSent = true;
        for await (const piece of pieces) {
          signal.throwIfAborted();
          await sink.write(piece);
        }
        this.sentBytes = entry.endOffset;
        return false;
      }
      case 'end':
        if (entry.end.ok) {
          this.sendHead(sink);
          sink.end();
        } else {
          sink.fail(entry.end.code as ErrorCode, entry.end.message);
        }
        return true;
    }
  }

  private sendHead(sink: ResponseSink): void {
    if (this.headSent || this.pendingHead === undefined) return;
    this.headSent = true;
    sink.head(this.pendingHead);
  }
}

async function raceAbort(wait: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const onAbort = (): void =>
      reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
    signal.addEventListener('abort', onAbort, { once: true });
    void wait.then(() => {
      signal.removeEventListener('abort', onAbort);
      resolve();
    });
  });
}
