/** `npm run bench`: set-up, then the measurements (`-- --quick`: one repeat, the page stays as it is). */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { setUpOrExit } from './setup.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));

await setUpOrExit({ needsRedis: true });
const bench = spawn(
  process.execPath,
  ['--import', 'tsx', 'bench/end-to-end.bench.ts', ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => bench.kill(signal));
bench.on('exit', (code) => process.exit(code ?? 1));
