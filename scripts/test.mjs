/**
 * `npm test`: set-up, then the static checks (each counts as one test) and every layer of tests. An argument chooses:
 * `static`, a layer's name, or `nightly`. The last line is `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { setUpOrExit } from './setup.mjs';
import { findProgram, installByApt } from './system-packages.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const bin = (name) => path.join(root, 'node_modules/.bin', name);

const statics = [
  ['format:check', [bin('prettier'), '--check', '.', '--log-level=warn']],
  ['lint', [bin('eslint'), '.']],
  ['typecheck', [bin('tsc'), '-p', 'tsconfig.json', '--noEmit']],
  [
    'deps',
    [bin('depcruise'), '--config', '.dependency-cruiser.cjs', 'src', 'workers', 'test', 'bench'],
  ],
  ['dead', [bin('knip')]],
];
/** Layers that start Redis or whole systems run one file at a time. */
const layers = [
  { name: 'policy', workers: 2 },
  { name: 'contract', workers: 2 },
  { name: 'integration', workers: 1 },
  { name: 'e2e', workers: 1 },
  { name: 'browser', workers: 1 },
  { name: 'chaos', workers: 1 },
];

const totals = { passed: 0, failed: 0 };

function runStatic() {
  for (const [name, [command, ...args]] of statics) {
    const { status, stdout, stderr } = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
    if (status === 0) totals.passed += 1;
    else {
      totals.failed += 1;
      console.log(`FAIL ${name}\n${stdout}${stderr}`);
    }
    console.log(`${name}: ${status === 0 ? 'passed' : 'failed'}`);
  }
}

function runLayer({ name, workers }) {
  const folder = path.join(root, 'test', name);
  const hasTests =
    existsSync(folder) &&
    readdirSync(folder, { recursive: true }).some((file) => String(file).endsWith('.test.ts'));
  if (!hasTests) return;
  const out = mkdtempSync(path.join(tmpdir(), 'berth-test-'));
  const report = path.join(out, 'report.json');
  const args = ['--selectProjects', name, '--json', `--outputFile=${report}`, '--forceExit'];
  const { status } = spawnSync(
    process.execPath,
    [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      path.join(root, 'node_modules/jest/bin/jest.js'),
      ...args,
      ...(workers === 1 ? ['--runInBand'] : [`--maxWorkers=${workers}`]),
    ],
    { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const result = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined;
  rmSync(out, { recursive: true, force: true });
  const count = (...states) =>
    result?.testResults
      .flatMap(({ assertionResults }) => assertionResults)
      .filter(({ status: state }) => states.includes(state)).length ?? 0;
  const passed = count('passed');
  // A test that was not run has shown nothing; a file that does not even load has no tests to count.
  const failed =
    count('failed', 'pending', 'todo', 'skipped', 'disabled') +
    (result?.numRuntimeErrorTestSuites ?? 1);
  totals.passed += passed;
  totals.failed += failed === 0 && status !== 0 ? 1 : failed;
}

function ensureBrowser() {
  if (findProgram('chromium', 'chromium-browser') === undefined) installByApt('chromium');
}

await setUpOrExit({ needsRedis: true });
const chosen = process.argv[2];
const known = ['static', 'nightly', ...layers.map(({ name }) => name)];
if (chosen !== undefined && !known.includes(chosen)) {
  console.error(`berth: there is no layer ${chosen}; there are ${known.join(', ')}`);
  process.exit(1);
}
if (chosen === undefined || chosen === 'static') runStatic();
if (chosen === undefined || chosen === 'browser') ensureBrowser();
for (const layer of layers) if (chosen === undefined || chosen === layer.name) runLayer(layer);
if (chosen === 'nightly') runLayer({ name: 'nightly', workers: 1 });
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed > 0 || totals.passed === 0 ? 1 : 0;
