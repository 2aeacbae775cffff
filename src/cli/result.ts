import { existsSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import type { BerthClient } from './berth-client.ts';
import { CommandError, EXIT, Refusal } from './command-error.ts';
import { fetchResult } from './fetch-result.ts';
import { FileTarget, StreamTarget } from './result-target.ts';
import type { Terminal } from './terminal.ts';

/** Where a result goes. */
export interface ResultOptions {
  /** A file; `-` and undefined: standard output. */
  readonly output?: string;
  /** Whether a file of that name may go. */
  readonly force?: boolean;
}

/**
 * `berth result`: the bytes of a job's answer, to standard output or a file. A file grows as `<file>.<job>.part` and gets
 * its name when it is whole; the same command after a break goes on where that ends. Resolves to 0 when the model server
 * answered with success, else to the first digit of its status.
 */
export async function result(
  client: BerthClient,
  terminal: Terminal,
  id: string,
  { output = '-', force = false }: ResultOptions,
): Promise<number> {
  const isFile = output !== '-';
  const refuse = (): void => {
    if (isFile && !force && existsSync(output))
      throw new CommandError(`${output} is there already; --force replaces it`);
  };
  refuse();
  terminal.ifInterrupted(isFile ? 'the same command goes on where it ended.' : 'the result stays.');
  const file = new FileTarget(`${output}.${id}.part`);
  try {
    const target = isFile ? file : new StreamTarget(terminal.out);
    const { status } = await fetchResult(client, terminal, id, target);
    if (isFile) {
      await file.finish();
      refuse();
      await rename(`${output}.${id}.part`, output);
    }
    if (status >= 300) terminal.say(`berth: the model server answered ${status}`);
    return status < 300 ? 0 : Math.floor(status / 100);
  } catch (error) {
    if (error instanceof Refusal && error.status === 404 && error.what.includes('no result yet'))
      throw new CommandError(`${error.message}; berth watch ${id} waits for it`, EXIT.refused);
    throw error;
  } finally {
    await file.close();
  }
}
