import { existsSync, mkdirSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import path from 'node:path';
import type { ShotObject } from '../gateway/film-view.ts';
import type { BerthClient } from './berth-client.ts';
import { CommandError, Refusal } from './command-error.ts';
import { fetchResult } from './fetch-result.ts';
import { folderName, readNotes, withFetched, writeNotes } from './film-state.ts';
import { FileTarget } from './result-target.ts';
import { shotName } from './shot-name.ts';
import type { Terminal } from './terminal.ts';

/** Brings the results of a film's shots into a folder, each once. */
export class FilmResults {
  /** Shots whose result is not kept any more. */
  readonly lost = new Set<number>();
  private readonly client: BerthClient;
  private readonly terminal: Terminal;
  private readonly folder: string;
  private readonly notesFile: string;

  constructor(client: BerthClient, terminal: Terminal, folder: string, notesFile: string) {
    this.client = client;
    this.terminal = terminal;
    this.folder = folder;
    this.notesFile = notesFile;
    mkdirSync(folder, { recursive: true });
  }

  /** Fetches what is completed and not there. Throws CommandError when a file that is not the film's is in the way. */
  async bring(shots: readonly ShotObject[]): Promise<void> {
    for (const { shot, state, job_id: jobId } of shots) {
      if (state !== 'completed' || jobId === null || this.lost.has(shot)) continue;
      if (!this.has(shot)) await this.fetch(shot, jobId, shots.length);
    }
  }

  /** Whether the result of a shot is there. */
  has(shot: number): boolean {
    const name = this.names()[String(shot)];
    return name !== undefined && existsSync(path.join(this.folder, name));
  }

  private names(): Readonly<Record<string, string>> {
    return readNotes(this.notesFile)?.fetched[folderName(this.notesFile, this.folder)] ?? {};
  }

  private async fetch(shot: number, jobId: string, total: number): Promise<void> {
    const part = path.join(this.folder, `.${shot}-${jobId}.part`);
    const target = new FileTarget(part);
    try {
      const { contentType } = await fetchResult(this.client, this.terminal, jobId, target);
      await target.finish();
      const name = shotName(shot, total, contentType);
      await this.keep(shot, part, name);
    } catch (error) {
      const isLost = error instanceof Refusal && (error.status === 404 || error.status === 410);
      if (!isLost) throw error;
      this.lost.add(shot);
      this.terminal.say(`berth: the result of shot ${shot} is not kept any more`);
    } finally {
      await target.close();
    }
  }

  /** Noted before it gets its name: what is killed in between is fetched again, and knows the file for its own. */
  private async keep(shot: number, part: string, name: string): Promise<void> {
    const file = path.join(this.folder, name);
    const folder = folderName(this.notesFile, this.folder);
    const notes = readNotes(this.notesFile);
    if (notes === undefined) throw new CommandError(`${this.notesFile} is gone`);
    if (notes.fetched[folder]?.[String(shot)] !== name) {
      if (existsSync(file))
        throw new CommandError(
          `${file} is there already and not of this film: move it away, or use another --out`,
        );
      writeNotes(this.notesFile, withFetched(notes, folder, shot, name));
    }
    await rename(part, file);
  }
}
