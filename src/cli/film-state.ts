import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import path from 'node:path';
import { CommandError } from './command-error.ts';

/** What `berth film run` keeps beside the shots, to go on with the same film. */
export interface FilmNotes {
  readonly version: 1;
  /** SHA-256 of the shots file that the film is made of. */
  readonly shotsSha256: string;
  /** Where the film is: Berth's base address. */
  readonly berth: string;
  /** Idempotency-Key of its making: as often as it is sent, it is one film. */
  readonly key: string;
  /** Its id; null until Berth has answered. */
  readonly film: string | null;
  /** By folder, as written relative to the notes: number of a shot to the file that holds its result. */
  readonly fetched: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** Where the notes of a film are kept. */
export const notesFileOf = (shotsFile: string): string => `${shotsFile}.film.json`;

/** Notes of a film that is still to be made. */
export const newNotes = (shotsSha256: string, berth: string): FilmNotes => ({
  version: 1,
  shotsSha256,
  berth,
  key: `film-${shotsSha256.slice(0, 32)}-${randomUUID()}`,
  film: null,
  fetched: {},
});

/** The notes of a file; undefined when there is none. Throws CommandError when it cannot be read. */
export function readNotes(file: string): FilmNotes | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new CommandError(`${file} cannot be read: ${code}`);
  }
  try {
    const notes = JSON.parse(text) as Partial<FilmNotes> | null;
    const { version, shotsSha256, berth, key, film, fetched } = notes ?? {};
    const isSound =
      version === 1 &&
      [shotsSha256, berth, key].every((value) => typeof value === 'string') &&
      (film === null || typeof film === 'string') &&
      typeof fetched === 'object';
    if (isSound) return notes as FilmNotes;
  } catch {
    // Said below.
  }
  throw new CommandError(`${file} holds no notes of a film; --new starts another film`);
}

/** Puts the notes in place of older ones, durably and whole. */
export function writeNotes(file: string, notes: FilmNotes): void {
  const temporary = `${file}.${process.pid}.new`;
  const handle = openSync(temporary, 'w');
  try {
    writeSync(handle, `${JSON.stringify(notes, null, 2)}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  renameSync(temporary, file);
}

/**
 * The notes to go on with, written to the file if there were none. Throws CommandError when those there are of other shots
 * or of another Berth.
 *
 * @param isNew whether to start another film whatever there is
 */
export function openNotes(
  file: string,
  shotsSha256: string,
  berth: string,
  isNew: boolean,
): FilmNotes {
  const notes = isNew ? undefined : readNotes(file);
  if (notes === undefined) {
    const fresh = newNotes(shotsSha256, berth);
    writeNotes(file, fresh);
    return fresh;
  }
  const film = notes.film ?? 'that was to be made';
  if (notes.shotsSha256 !== shotsSha256)
    throw new CommandError(
      `the shots are not those of the film ${film}: put them back, or start another film with --new`,
    );
  if (notes.berth !== berth)
    throw new CommandError(
      `the film ${film} is at ${notes.berth}, not at ${berth}: use --url, or start another film with --new`,
    );
  return notes;
}

/** The notes with one more result in a folder. */
export function withFetched(
  notes: FilmNotes,
  folder: string,
  shot: number,
  name: string,
): FilmNotes {
  const before = notes.fetched[folder] ?? {};
  return { ...notes, fetched: { ...notes.fetched, [folder]: { ...before, [shot]: name } } };
}

/** How the notes call a folder: as seen from where they are, so that both can move together. */
export const folderName = (notesFile: string, folder: string): string =>
  path.relative(path.dirname(path.resolve(notesFile)), path.resolve(folder)) || '.';
