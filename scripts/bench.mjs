/** `npm run bench`: set-up, then the measurements (`-- --quick`: one repeat, the page stays as it is). */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { setUpOrExit } from './setup.mjs';
import { findProgram, installByApt } from './system-packages.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));

await setUpOrExit({ needsRedis: true });
// Debian keeps it where an ordinary user's PATH does not look; what is compared with it is left out without it.
if (findProgram('nginx') === undefined && !existsSync('/usr/sbin/nginx')) installByApt('nginx');
const bench = spawn(
  process.execPath,
  ['--import', 'tsx', 'bench/end-to-end.bench.ts', ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => bench.kill(signal));
bench.on('exit', (code) => process.exit(code ?? 1));
