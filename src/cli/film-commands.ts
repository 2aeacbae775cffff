import type { Command } from 'commander';
import { idArgument, runWithClient, several, withClient } from './client-command.ts';
import { FILM_CHANGES, filmChange, filmStatus } from './film-change.ts';
import type { FilmChange } from './film-change.ts';
import type { FilmRunOptions } from './film-run.ts';

const SAID: Readonly<Record<FilmChange, string>> = {
  pause: 'No shot follows the one that runs.',
  resume: 'Goes on with a paused film.',
  cancel: 'Ends a film; what is done stays.',
  retry: 'Tries the shot again that a film failed at.',
  skip: 'Goes on without the shot that a film stands at.',
};

/** Adds `film run|status|pause|resume|cancel|retry|skip`. */
export function addFilmCommands(berth: Command): void {
  const film = berth.command('film').description('Films: chains of shots, one at a time.');

  withClient(film.command('run'))
    .description(
      'Makes a film of a file, or goes on with the one made of it, and fetches its results.',
    )
    .argument('<shots>', 'a JSON object a line: path, method, headers, body, take')
    .option('--out <folder>', 'where the results go, a file a shot')
    .option('--state <file>', 'notes for going on; default: <shots>.film.json')
    .option('--new', 'start another film of the same file')
    .option('--header <header>', '"Name: value", several times, of the film', several)
    .option('--intent <intent>', 'what it is for; default: film-shot')
    .option('--priority <priority>', 'a whole number, or the name of a band')
    .option('--tier <tier>', 'of the member that a trusted key speaks for')
    .action(async (file: string, options: FilmRunOptions) => {
      // It brings the rules of a film's request along, which take a while to load.
      const { filmRun } = await import('./film-run.ts');
      await runWithClient(options, (client, terminal) => filmRun(client, terminal, file, options));
    });

  withClient(film.command('status'))
    .description('Where a film stands.')
    .argument('<film>', 'its id', idArgument)
    .option('--json', 'as Berth answers')
    .action(async (id: string, options: { json?: boolean }) =>
      runWithClient(options, (client, terminal) => filmStatus(client, terminal, id, options)),
    );

  for (const what of FILM_CHANGES) {
    withClient(film.command(what))
      .description(SAID[what])
      .argument('<film>', 'its id', idArgument)
      .option('--json', 'as Berth answers')
      .action(async (id: string, options: { json?: boolean }) =>
        runWithClient(options, (client, terminal) =>
          filmChange(client, terminal, what, id, options),
        ),
      );
  }
}
