import { constants, createReadStream } from 'node:fs';
import { mkdir, open, readFile, readdir, rm, stat, statfs, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { BodyStore, BodyWriter } from '../../ports/body-store.ts';

const NAME = /^[0-9a-f-]{36}\.(?:request|[1-9][0-9]*)$/;

/** Bodies as files of one folder, readable by this user alone. Ingress and worker share the folder. */
export class FileBodyStore implements BodyStore {
  private readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Makes the folder if it is missing. */
  static async open(dataDir: string): Promise<FileBodyStore> {
    const folder = join(dataDir, 'bodies');
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return new FileBodyStore(folder);
  }

  async create(name: string, offset = 0): Promise<BodyWriter> {
    const flags = constants.O_CREAT | constants.O_TRUNC | constants.O_WRONLY;
    return new FileBodyWriter(await open(this.path(name), flags, 0o600), offset, this.folder);
  }

  async *read(name: string, from = 0, to?: number): AsyncIterable<Buffer> {
    if (to !== undefined && to <= from) return;
    const range = to === undefined ? { start: from } : { start: from, end: to - 1 };
    yield* createReadStream(this.path(name), {
      ...range,
      highWaterMark: 256 * 1024,
    }) as AsyncIterable<Buffer>;
  }

  async size(name: string): Promise<number | undefined> {
    try {
      return (await stat(this.path(name))).size;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async removeJobs(jobIds: readonly string[]): Promise<void> {
    if (jobIds.length === 0) return;
    const gone = new Set(jobIds);
    for (const name of await readdir(this.folder)) {
      if (gone.has(name.slice(0, 36))) await rm(join(this.folder, name), { force: true });
    }
  }

  async remove(name: string): Promise<void> {
    await rm(this.path(name), { force: true });
  }

  async listJobs(minAgeMs: number): Promise<string[]> {
    const ids = new Set<string>();
    for (const name of await readdir(this.folder)) {
      if (!NAME.test(name)) continue;
      const info = await stat(join(this.folder, name)).catch(() => undefined);
      if (info !== undefined && Date.now() - info.mtimeMs >= minAgeMs) ids.add(name.slice(0, 36));
    }
    return [...ids];
  }

  /** Leaves a marker for the other processes that should see this very folder. */
  async writeMarker(marker: string): Promise<void> {
    await writeFile(join(this.folder, 'shared-marker'), marker, { mode: 0o600 });
  }

  /** The marker found in this folder, if there is one. */
  async readMarker(): Promise<string | undefined> {
    return readFile(join(this.folder, 'shared-marker'), 'utf8').catch(() => undefined);
  }

  async freeBytes(): Promise<number> {
    const info = await statfs(this.folder);
    return info.bavail * info.bsize;
  }

  private path(name: string): string {
    if (!NAME.test(name)) throw new Error('not the name of a stored body');
    return join(this.folder, name);
  }
}

class FileBodyWriter implements BodyWriter {
  private readonly handle: FileHandle;
  private position: number;
  private readonly folder: string;
  private closed = false;
  private isListed = false;

  constructor(handle: FileHandle, offset: number, folder: string) {
    this.handle = handle;
    this.position = offset;
    this.folder = folder;
  }

  async append(bytes: Buffer): Promise<void> {
    // A disk that fills up takes a part of a write before it refuses the rest.
    for (let done = 0; done < bytes.length;) {
      const left = bytes.length - done;
      const { bytesWritten } = await this.handle.write(bytes, done, left, this.position);
      done += bytesWritten;
      this.position += bytesWritten;
    }
  }

  async sync(): Promise<void> {
    await this.handle.datasync();
    if (this.isListed) return;
    // The bytes of a new file are of no use when a power cut takes its name.
    const folder = await open(this.folder, constants.O_RDONLY);
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
    this.isListed = true;
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.handle.close();
  }
}
