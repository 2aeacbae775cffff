import { once } from 'node:events';
import { open, rm, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { CommandError } from './command-error.ts';

/** Where the bytes of a result go. */
export interface ResultTarget {
  /** Bytes that are there. */
  size(): Promise<number>;
  /** Puts a piece at its place; what is there of it already is the same. */
  write(piece: Buffer, at: number): Promise<void>;
  /** Forgets what is there. Throws CommandError when that cannot be. */
  restart(): Promise<void>;
}

/** A stream, which takes no byte back. */
export class StreamTarget implements ResultTarget {
  private readonly stream: Writable;
  private written = 0;

  constructor(stream: Writable) {
    this.stream = stream;
  }

  size(): Promise<number> {
    return Promise.resolve(this.written);
  }

  async write(piece: Buffer, at: number): Promise<void> {
    const fresh = piece.subarray(Math.max(0, this.written - at));
    this.written += fresh.length;
    if (fresh.length > 0 && !this.stream.write(fresh)) await once(this.stream, 'drain');
  }

  restart(): Promise<void> {
    if (this.written === 0) return Promise.resolve();
    throw new CommandError(`the answer broke off after ${this.written} bytes and begins anew`);
  }
}

/** A file that is filled from where it ends. */
export class FileTarget implements ResultTarget {
  private readonly file: string;
  private handle: FileHandle | undefined;

  constructor(file: string) {
    this.file = file;
  }

  async size(): Promise<number> {
    return (await stat(this.file).catch(() => undefined))?.size ?? 0;
  }

  async write(piece: Buffer, at: number): Promise<void> {
    // Not 'a': the last byte is written once more.
    this.handle ??= await open(this.file, (await this.size()) > 0 ? 'r+' : 'w');
    for (let done = 0; done < piece.length;) {
      const { bytesWritten } = await this.handle.write(piece, done, piece.length - done, at + done);
      done += bytesWritten;
    }
  }

  async restart(): Promise<void> {
    await this.close();
    await rm(this.file, { force: true });
  }

  /** Durable when it resolves; an answer without a byte is a file too. */
  async finish(): Promise<void> {
    this.handle ??= await open(this.file, 'a');
    await this.handle.sync();
    await this.close();
  }

  async close(): Promise<void> {
    await this.handle?.close();
    this.handle = undefined;
  }
}
