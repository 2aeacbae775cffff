import { circumstances, writeCapacityPage } from './capacity-page.ts';
import { BenchModelServer } from './model-server.ts';
import { measurePass } from './pass.ts';
import type { Figures, Fsync, PassSize } from './pass.ts';
import { cells, table } from './report.ts';

const FULL: PassSize = {
  gaps: 300,
  backlog: 10_000,
  pairs: 50,
  chunks: 100,
  largeBytes: 100_000_000,
  warmUps: 90,
};
const QUICK: PassSize = { ...FULL, gaps: 150, pairs: 25, chunks: 60, warmUps: 60 };
const isQuick = process.argv.includes('--quick');
const size = isQuick ? QUICK : FULL;
const repeats = isQuick ? 1 : 5;

const where = circumstances();
const startedAt = performance.now();
const server = await BenchModelServer.start();
const passes: Record<Fsync, Figures[]> = { everysec: [], always: [] };
for (let repeat = 0; repeat < repeats; repeat += 1) {
  const order: Fsync[] = repeat % 2 === 0 ? ['everysec', 'always'] : ['always', 'everysec'];
  for (const fsync of order) {
    passes[fsync].push(await measurePass(server, fsync, repeat % 2 === 1, size));
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    console.error(`pass ${repeat + 1} of ${repeats}, fsync ${fsync}: done at ${seconds} s`);
  }
}
await server.stop();

const report = [
  `Measured ${where}; ${repeats} passes for each fsync setting in ${Math.round((performance.now() - startedAt) / 1000)} s.`,
  table(cells('everysec', passes.everysec), cells('always', passes.always)),
].join('\n\n');
console.log(report);
if (isQuick) console.log('\nA quick run does not change docs/operations/capacity.md.');
else writeCapacityPage(report);
process.exit(0);
