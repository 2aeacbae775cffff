import { WAITING } from './backlog-settings.ts';
import { measureOrder } from './backlogs.ts';
import type { BacklogSize } from './backlog-pass.ts';
import { circumstances, writeCapacityPage } from './capacity-page.ts';
import { ROWS } from './goals.ts';
import { BenchModelServer } from './model-server.ts';
import { measurePass } from './pass.ts';
import type { Figures, Fsync, PassSize } from './pass.ts';
import { table } from './report.ts';

const FULL: PassSize = {
  gaps: 300,
  backlog: 10_000,
  pairs: 50,
  passed: 500,
  chunks: 100,
  largeBytes: 100_000_000,
  warmUps: 90,
};
const QUICK: PassSize = { ...FULL, gaps: 150, pairs: 25, passed: 250, chunks: 60, warmUps: 60 };
const FULL_ORDER: BacklogSize = {
  gaps: 300,
  blocks: 4,
  warmUps: 90,
  views: 20,
  swaps: 8,
  waiting: WAITING,
};
/** Without the largest backlog, which takes the most time. */
const QUICK_ORDER: BacklogSize = {
  ...FULL_ORDER,
  gaps: 150,
  blocks: 2,
  waiting: WAITING.slice(0, 2),
};

const isQuick = process.argv.includes('--quick');
const repeats = isQuick ? 1 : 3;
const orderRepeats = isQuick ? 1 : 2;

const where = circumstances();
const startedAt = performance.now();
const seconds = (): number => Math.round((performance.now() - startedAt) / 1000);
const tell = (what: string): void => console.error(`${what}: done at ${seconds()} s`);

const server = await BenchModelServer.start();
const order = await measureOrder(server, orderRepeats, isQuick ? QUICK_ORDER : FULL_ORDER, tell);
const passes: Record<Fsync, Figures[]> = { everysec: [], always: [] };
for (let repeat = 0; repeat < repeats; repeat += 1) {
  const settings: Fsync[] = repeat % 2 === 0 ? ['everysec', 'always'] : ['always', 'everysec'];
  for (const fsync of settings) {
    const size = isQuick ? QUICK : FULL;
    passes[fsync].push(await measurePass(server, fsync, repeat % 2 === 1, size));
    tell(`pass ${repeat + 1} of ${repeats}, fsync ${fsync}`);
  }
}
await server.stop();

const columns = (['everysec', 'always'] as const).map((name) => ({ name, passes: passes[name] }));
const report = [
  `Measured ${where}; ${repeats} passes for each fsync setting and ${orderRepeats} for each number of members in ${seconds()} s.`,
  table(ROWS, columns),
  order,
].join('\n\n');
console.log(report);
if (isQuick) console.log('\nA quick run does not change docs/operations/capacity.md.');
else writeCapacityPage(report);
process.exit(0);
