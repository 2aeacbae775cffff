import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../', import.meta.url));
const main = path.join(root, 'dist/src/cli/main.js');

/** `bin/berth`. */
export const BIN = path.join(root, 'bin/berth');

/** What a command came to. */
export interface CommandEnd {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command of the command line that runs. */
export interface BerthCommand {
  readonly child: ChildProcess;
  /** Both streams so far. */
  readonly output: () => string;
  readonly end: Promise<CommandEnd>;
}

/** Starts a command from dist in a folder. @param program what runs it: `BIN`, or the built file by default */
export function startCommand(
  args: readonly string[],
  { env, cwd, program }: { env: Record<string, string>; cwd: string; program?: string },
): BerthCommand {
  const before = program === undefined ? [main] : [];
  const child = spawn(program ?? process.execPath, [...before, ...args], {
    cwd,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const texts = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (texts.stdout += piece));
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (texts.stderr += piece));
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  const end = once(child, 'close').then(([status]) => {
    process.removeListener('exit', killAtExit);
    return { status: status as number | null, ...texts };
  });
  return { child, output: () => texts.stdout + texts.stderr, end };
}
