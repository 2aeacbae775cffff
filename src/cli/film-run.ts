import { readFileSync } from 'node:fs';
import type { FilmObject, FilmSummary } from '../gateway/film-view.ts';
import type { BerthClient } from './berth-client.ts';
import { CommandError, EXIT, Refusal } from './command-error.ts';
import { etaText } from '../gateway/duration-text.ts';
import { filmAdvice, filmLine } from './film-line.ts';
import { FilmResults } from './film-results.ts';
import { notesFileOf, openNotes, writeNotes } from './film-state.ts';
import { follow } from './follow.ts';
import { printable } from './printable.ts';
import { ProgressLine } from './progress-line.ts';
import { readShots, withLine } from './shots-file.ts';
import { headersOf } from './submit-request.ts';
import type { SubmitOptions } from './submit-request.ts';
import type { Terminal } from './terminal.ts';

/** How a film is made. */
export interface FilmRunOptions extends Pick<
  SubmitOptions,
  'header' | 'intent' | 'priority' | 'tier'
> {
  /** Folder for the results; undefined: they are not fetched. */
  readonly out?: string;
  /** File for the notes; default: beside the shots. */
  readonly state?: string;
  /** Whether to start another film, whatever the notes say. */
  readonly new?: boolean;
}

/**
 * `berth film run`: makes the film of a shots file, or goes on with the one it has made, follows it and brings its results.
 *
 * 1. The notes beside the shots name the film; they are written before it is asked for, with its Idempotency-Key, so that a
 *    command killed at any point goes on with the same film.
 * 2. Results are fetched as shots complete; those that are there already are not fetched again.
 * 3. It ends with the film, or where the film has failed; a paused film is waited for.
 */
export async function filmRun(
  client: BerthClient,
  terminal: Terminal,
  file: string,
  options: FilmRunOptions,
): Promise<number> {
  const shots = readShots(readInput(file));
  const notesFile = options.state ?? notesFileOf(file);
  // 1
  const notes = openNotes(notesFile, shots.sha256, client.base, options.new === true);
  let id = notes.film;
  if (id === null) {
    terminal.ifInterrupted('the same command goes on.');
    id = await make(client, notes.key, shots, headersOf(options));
    writeNotes(notesFile, { ...notes, film: id });
    terminal.say(`film ${id} of ${shots.lines.length} shots`);
  } else terminal.say(`going on with film ${id}`);
  terminal.ifInterrupted(
    `the film goes on; the same command follows it, berth film cancel ${id} ends it`,
  );
  // 2
  const results =
    options.out === undefined
      ? undefined
      : new FilmResults(client, terminal, options.out, notesFile);
  const film = await followFilm(client, terminal, id, results).catch((error: unknown) => {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
    throw new CommandError(`the film ${id} is not kept any more; --new starts another one`);
  });
  // 3
  const advice = filmAdvice(film);
  if (advice !== undefined) terminal.say(`berth: ${advice}; then the same command follows it`);
  const isMissing = (results?.lost.size ?? 0) > 0;
  return film.state === 'completed' && !isMissing ? 0 : EXIT.endedOtherwise;
}

async function make(
  client: BerthClient,
  key: string,
  shots: ReturnType<typeof readShots>,
  headers: Readonly<Record<string, string>>,
): Promise<string> {
  try {
    const film = await client.json<FilmObject>('/berth/films', {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': key },
      body: shots.body,
    });
    return film.id;
  } catch (error) {
    throw error instanceof Refusal ? withLine(error, shots) : error;
  }
}

const isOver = ({ state }: FilmSummary): boolean =>
  state === 'completed' || state === 'cancelled' || state === 'failed';

/** Resolves to the film as it is when it is over, its results fetched. */
async function followFilm(
  client: BerthClient,
  terminal: Terminal,
  id: string,
  results: FilmResults | undefined,
): Promise<FilmSummary> {
  const self = `/berth/films/${id}`;
  let film: FilmSummary | undefined;
  const line = terminal.out.isTTY ? new ProgressLine(terminal.out, () => shown(film)) : undefined;
  let [told, done] = ['', -1];
  try {
    for await (film of follow<FilmSummary>(client, terminal, {
      events: `${self}/events`,
      self,
      fromEvent: ({ data }) => JSON.parse(data) as FilmSummary,
      fromObject: (json) => json as FilmSummary,
      isOver,
    })) {
      const key = `${film.state} ${film.done}`;
      if (line !== undefined) line.draw();
      else if (key !== told) terminal.print(printable(filmLine(film)));
      told = key;
      if (results !== undefined && film.done !== done) {
        await results.bring((await client.json<FilmObject>(self)).shots);
        done = film.done;
      }
    }
  } finally {
    line?.stop();
  }
  if (film === undefined) throw new CommandError(`the film ${id} cannot be followed`);
  if (line !== undefined) terminal.print(printable(filmLine(film)));
  return film;
}

function shown(film: FilmSummary | undefined) {
  if (film === undefined) return undefined;
  const { state, done, total, eta_seconds: eta } = film;
  const left = eta === null || done === total ? '' : `, the rest in ${etaText(eta)}`;
  return { fraction: done / total, before: state, after: `${done}/${total}${left}` };
}

function readInput(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new CommandError(
      `${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? ''}`,
    );
  }
}
