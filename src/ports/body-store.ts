/** A file being written. One writer; bytes are promised to readers only after `sync`. */
export interface BodyWriter {
  /** Appends; resolves once the bytes are handed to the kernel. */
  append(bytes: Buffer): Promise<void>;
  /** Makes everything appended so far survive a power cut. */
  sync(): Promise<void>;
  /** Releases the file handle; safe to call twice. */
  close(): Promise<void>;
}

/**
 * Bodies and answers too large for Redis, as files shared by ingress and worker. A name is
 * `<job id>.request` or `<job id>.<run>`: one file a run, because file writes are not fenced.
 */
export interface BodyStore {
  /** Creates the file, writing from `offset` on (default 0); an existing one of that name is replaced. */
  create(name: string, offset?: number): Promise<BodyWriter>;
  /** Bytes `from` up to, not including, `to` (default: the end). Iterating throws if the file is gone. */
  read(name: string, from?: number, to?: number): AsyncIterable<Buffer>;
  /** Bytes in the file, or undefined if there is none. */
  size(name: string): Promise<number | undefined>;
  /** Removes one file; a missing one is no error. */
  remove(name: string): Promise<void>;
  /** Removes every file of these jobs; missing ones are no error. */
  removeJobs(jobIds: readonly string[]): Promise<void>;
  /** Job ids that own at least one file older than `minAgeMs`: candidates of the orphan sweep. */
  listJobs(minAgeMs: number): Promise<string[]>;
  /** Free bytes of the disk that holds the store, for admission. */
  freeBytes(): Promise<number>;
}
