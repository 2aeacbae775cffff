/** `npm run berth -- …`: set-up, then the command line, which is this same process. */
import path from 'node:path';
import { runCommandLine } from './command-line.mjs';
import { setUpOrExit } from './setup.mjs';

await setUpOrExit({ needsRedis: false });
// npm has gone to the folder of package.json; files are named as seen from the caller's. BERTH_CONFIG is not: it names
// the file that it names for `npm start`.
const { npm_lifecycle_event: script, INIT_CWD: callers, BERTH_CONFIG: config } = process.env;
if (script === 'berth' && callers !== undefined && callers !== '') {
  if (config !== undefined && config.trim() !== '')
    process.env.BERTH_CONFIG = path.resolve(config.trim());
  process.chdir(callers);
}
await runCommandLine();
