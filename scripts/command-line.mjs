/** The command line as it was last built. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const main = new URL('../dist/src/cli/main.js', import.meta.url);

/** Whether it can run: packages and built code are there. */
export const isSetUp = () =>
  existsSync(main) && existsSync(new URL('../node_modules/commander', import.meta.url));

/**
 * Runs it in this process, on the caller's arguments. The data folder of a Berth that says nothing else is the one beside
 * the code, where `npm start` has it, whatever folder the caller is in.
 */
export async function runCommandLine() {
  if ((process.env.DATA_DIR ?? '').trim() === '') process.env.DATA_DIR = `${root}data`;
  await import(main.href);
}
