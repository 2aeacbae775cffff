import { type Command, InvalidArgumentError, Option } from 'commander';
import { BerthClient } from './berth-client.ts';
import { Terminal } from './terminal.ts';

interface ClientSettings {
  url: string;
  key?: string;
  member?: string;
}

const DEFAULT_URL = 'http://127.0.0.1:8080';

/** Gives a command the options that say which Berth it speaks with, and as whom. */
export function withClient(command: Command): Command {
  return command
    .addOption(
      new Option('--url <address>', `Berth's address; default: ${DEFAULT_URL}`).env('BERTH_URL'),
    )
    .addOption(
      new Option('--key <key>', 'API key; the variable keeps it out of process lists').env(
        'BERTH_KEY',
      ),
    )
    .option('--member <member>', 'whom a trusted key speaks for');
}

/**
 * Runs what a command does with a client of its options; its exit code is what that resolves to. An interruption ends it
 * in order, a second one at once.
 */
export async function runWithClient<T extends object>(
  options: T,
  work: (client: BerthClient, terminal: Terminal, options: T) => Promise<number>,
): Promise<void> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const terminal = new Terminal(process.stdout, process.stderr, stop.signal);
  try {
    const { url, key, member } = options as Partial<ClientSettings>;
    const settings = { url: given(url) ?? DEFAULT_URL, key: given(key), member: given(member) };
    process.exitCode = await work(new BerthClient(settings, terminal), terminal, options);
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

/** An id of a job or a film, as an argument. */
export function idArgument(text: string): string {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('an id looks like 0f8b6c1e-3c1d-4b1e-9a57-2d9f0c6e7a41.');
  return text.toLowerCase();
}

/** An option that may come several times. */
export const several = (text: string, before: readonly string[] = []): string[] => [
  ...before,
  text,
];

/** A variable that is set to nothing is not set. */
const given = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === '' ? undefined : text.trim();
