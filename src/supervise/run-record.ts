import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { lockDomain } from '../adapters/process/kernel-lock.ts';
import { processMark } from './process-mark.ts';

/** A process of a run, told from any later one with the same id. */
export interface RecordedProcess {
  readonly name: string;
  readonly pid: number;
  /** See `processMark`. */
  readonly mark: string;
}

/** What a run leaves to the next one, should it be killed. */
export interface RunRecord {
  /** The realm in which the process ids mean anything; see `lockDomain`. */
  readonly domain: string;
  readonly processes: readonly RecordedProcess[];
  /** A folder outside DATA_DIR that holds the Redis socket, or null. */
  readonly socketFolder: string | null;
}

/**
 * The file `run.json` in DATA_DIR: exists while a supervisor runs, and after one that was killed.
 * Only the holder of the lock on DATA_DIR may use it.
 */
export class RunRecordFile {
  readonly #file: string;
  readonly #processes = new Map<string, RecordedProcess>();
  #socketFolder: string | null = null;

  constructor(dataDir: string) {
    this.#file = path.join(dataDir, 'run.json');
  }

  /** What a killed run of this machine and boot left, or null. A damaged file counts as none. */
  left(): RunRecord | null {
    try {
      const record = JSON.parse(readFileSync(this.#file, 'utf8')) as RunRecord;
      return record.domain === lockDomain() && Array.isArray(record.processes) ? record : null;
    } catch {
      return null;
    }
  }

  /** Notes the process that now runs under this name, in place of the one before. */
  noteProcess(name: string, pid: number): void {
    const mark = processMark(pid);
    if (mark === undefined) this.#processes.delete(name);
    else this.#processes.set(name, { name, pid, mark });
    this.#write();
  }

  /** Notes a folder outside DATA_DIR that has to go with the run. */
  noteSocketFolder(folder: string): void {
    this.#socketFolder = folder;
    this.#write();
  }

  /** Removes the file; called when nothing of the run is left. */
  remove(): void {
    rmSync(this.#file, { force: true });
  }

  #write(): void {
    const record: RunRecord = {
      domain: lockDomain(),
      processes: [...this.#processes.values()],
      socketFolder: this.#socketFolder,
    };
    writeFileSync(`${this.#file}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    renameSync(`${this.#file}.new`, this.#file);
  }
}
