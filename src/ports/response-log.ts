/** Status and end-to-end headers of the answer: the log's first entry of a run. */
export interface ResponseHead {
  status: number;
  /** Flat list name, value, name, value. */
  headers: string[];
  /** The body begins with all bytes of the run before: whoever has read those goes on behind them. */
  repeats?: true;
}

/** How a run's answer ended: the log's last entry. */
export type ResponseEnd =
  { ok: true; bytes: number } | { ok: false; code: string; message: string };

/** One entry of a response log, in log order. `endOffset`: body bytes of this run up to and including it. */
export type LogEntry =
  | { kind: 'head'; run: number; head: ResponseHead }
  | { kind: 'bytes'; run: number; endOffset: number; bytes: Buffer }
  | { kind: 'file'; run: number; endOffset: number }
  | { kind: 'end'; run: number; end: ResponseEnd };

/** A place in a log: everything up to it was read. Opaque. */
export type LogCursor = string & { readonly logCursor: unique symbol };

/** The worker's side of one run's log. Calls are ordered; none may overlap. */
export interface ResponseLogWriter {
  /** Writes the head; must come first and once. */
  head(head: ResponseHead): void;
  /**
   * Adds a piece of the body. Resolves when the writer is ready for more (backpressure while Redis is away
   * or slow), which may be before the piece is stored.
   */
  write(bytes: Buffer): Promise<void>;
  /**
   * Stores everything written but a small tail, which is left for the settlement so that the last piece,
   * the end marker and the settlement are one step. Throws FencedError if another owner took over.
   */
  drain(): Promise<void>;
  /** Body bytes written so far. */
  readonly bytes: number;
}

/** Another process owns the GPU (or this job) now; whoever gets this stops at once. */
export class FencedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FencedError';
  }
}

/** The ingress's side: follows logs of running jobs, pages old ones. */
export interface ResponseLogReader {
  /**
   * The next entries after `cursor` (undefined: from the start), at most a few hundred kilobytes; waits until
   * there is at least one or `signal` aborts (then it throws the signal's reason).
   */
  next(jobId: string, cursor: LogCursor | undefined, signal: AbortSignal): Promise<LogBatch>;
  /** The place behind the entry that holds this many body bytes of a run; entries after it may begin before them. */
  placeAt(run: number, offset: number): LogCursor;
}

/** Entries read at once, and where to read on. Never empty. */
export interface LogBatch {
  entries: LogEntry[];
  cursor: LogCursor;
}
