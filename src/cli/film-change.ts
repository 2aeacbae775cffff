import type { FilmObject } from '../gateway/film-view.ts';
import type { BerthClient } from './berth-client.ts';
import { filmAdvice, filmLine } from './film-line.ts';
import { printable } from './printable.ts';
import { textTable } from './text-table.ts';
import type { Terminal } from './terminal.ts';

/** What can be done to a film. */
export const FILM_CHANGES = ['pause', 'resume', 'cancel', 'retry', 'skip'] as const;

/** One of them. */
export type FilmChange = (typeof FILM_CHANGES)[number];

/** Shots that the table shows around the one the film stands at. */
const AROUND = 10;

/** `berth film status`: where a film stands, and the shots around that place. */
export async function filmStatus(
  client: BerthClient,
  terminal: Terminal,
  id: string,
  { json = false }: { json?: boolean },
): Promise<number> {
  const film = await client.json<FilmObject>(`/berth/films/${id}`);
  if (json) terminal.print(JSON.stringify(film, null, 2));
  else {
    terminal.print(printable(filmLine(film)));
    const at = film.shot ?? film.total;
    const rows = film.shots
      .filter(({ shot }) => Math.abs(shot - at) <= AROUND)
      .map(({ shot, state, job_id: job, tries }) => [
        ...[String(shot), state],
        ...[job ?? '-', String(tries)],
      ]);
    terminal.out.write(textTable(['SHOT', 'STATE', 'JOB', 'TRIES'], rows));
    const advice = filmAdvice(film);
    if (advice !== undefined) terminal.say(advice);
  }
  return 0;
}

/** `berth film pause|resume|cancel|retry|skip`: changes a film and says how it stands. */
export async function filmChange(
  client: BerthClient,
  terminal: Terminal,
  what: FilmChange,
  id: string,
  { json = false }: { json?: boolean },
): Promise<number> {
  // A second skip would skip a second shot; the others come to the same thing.
  const mayRepeat = what !== 'skip';
  const film = await client.json<FilmObject>(`/berth/films/${id}/${what}`, {
    method: 'POST',
    mayRepeat,
  });
  terminal.print(json ? JSON.stringify(film, null, 2) : printable(filmLine(film)));
  return 0;
}
