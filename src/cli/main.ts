import { Command } from 'commander';
import { ConfigurationError } from '../config/configuration-error.ts';
import { CommandError } from './command-error.ts';
import { addFilmCommands } from './film-commands.ts';
import { addJobCommands } from './job-commands.ts';
import { addOperatorCommands } from './operator-commands.ts';

/** `npm run berth -- …` and `bin/berth …`: jobs and films from the command line, and what an operator does there. */
const berth = new Command('berth').description(
  'Jobs and films of a Berth, and tools for its operator.',
);
addJobCommands(berth);
addFilmCommands(berth);
addOperatorCommands(berth);

/** What a person can act on is one line; anything else is a bug and keeps its stack. */
function explain(error: unknown): string[] {
  if (error instanceof ConfigurationError) return [...error.lines];
  if (error instanceof CommandError) return [error.message];
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) throw error;
  const hint = code === 'EBUSY' ? '; mount its folder instead of the file itself' : '';
  return [`the file cannot be changed: ${code} at ${syscall}${hint}`];
}

// Whoever reads the output may have had enough of it.
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) =>
  process.exit(code === 'EPIPE' ? 0 : 1),
);

try {
  await berth.parseAsync(process.argv);
} catch (error) {
  for (const line of explain(error)) process.stderr.write(`berth: ${line}\n`);
  process.exitCode = error instanceof CommandError ? error.exitCode : 1;
}
