/**
 * `npm test`: set-up, then every layer of tests, and the static checks (each counts as one test) beside the one that
 * mostly waits. An argument chooses: `static`, a layer's name, or `nightly`. The last line is `N passed, N failed`; a
 * test that was not run has failed.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { clearInterval, setInterval } from 'node:timers';
import { fileURLToPath } from 'node:url';
import { SetUpError, setUp } from './setup.mjs';
import { findProgram, installByApt } from './system-packages.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const statics = ['format:check', 'lint', 'typecheck', 'deps', 'dead'];
/**
 * What takes the time of something runs one file at a time. Of `covered` every branch and function must be run. A layer
 * that `waits` leaves most of the machine to other work of low priority.
 */
const layers = [
  { names: ['policy'], workers: 2, covered: 'src/policy' },
  { names: ['contract', 'integration', 'conformance'], workers: 2 },
  { names: ['e2e'], workers: 2 },
  { names: ['days'], workers: 1, waits: true },
  { names: ['browser', 'chaos'], workers: 2 },
];
const choices = ['static', ...layers.flatMap(({ names }) => names), 'nightly'];
const jestNodeOptions = '--experimental-vm-modules --disable-warning=ExperimentalWarning';
/** How long jest may take to end after its report (milliseconds). */
const jestEndsWithinMs = 10_000;

/** What a developer has set for `npm start` must not reach the tests. */
const env = { ...process.env, NODE_ENV: 'test' };
for (const line of readFileSync(path.join(root, '.env.example'), 'utf8').split('\n')) {
  const name = /^#?\s*([A-Z][A-Z0-9_]+)=/.exec(line)?.[1];
  if (name !== undefined) delete env[name];
}

const totals = { passed: 0, failed: 0 };
const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    for (const child of running) child.kill(signal);
    process.exit(1);
  });
}

/** Runs a program to its end; resolves with its exit code (null: a signal) and, where piped, its output. */
function run(command, args, options) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, env, ...options });
    running.add(child);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => (output += text));
    }
    options.onStart?.(child);
    child.on('error', (error) => (output += `${command}: ${error.message}\n`));
    child.on('close', (code) => {
      running.delete(child);
      resolve({ code, output });
    });
  });
}

async function runStatic(name, onStart) {
  const stdio = ['ignore', 'pipe', 'pipe'];
  const { code, output } = await run('npm', ['run', '--silent', name], { stdio, onStart });
  totals[code === 0 ? 'passed' : 'failed'] += 1;
  console.log(code === 0 ? `PASS ${name}` : `FAIL ${name}\n${output}`);
}

/** All of them, so many at a time. */
async function runStatics(lanes, onStart) {
  const waiting = [...statics];
  const lane = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      await runStatic(name, onStart);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Lets everything else on the machine go before a process and those that it starts. */
function giveWay({ pid }) {
  if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
}

async function runLayer({ names, workers, covered }) {
  const withTests = names.filter(hasTests);
  if (withTests.length === 0) return;
  if (withTests.includes('browser')) ensureBrowser();
  const folder = mkdtempSync(path.join(tmpdir(), 'berth-test-'));
  const report = path.join(folder, 'report.json');
  const args = [path.join(root, 'node_modules/jest/bin/jest.js'), '--json', '--outputFile', report];
  args.push(workers === 1 ? '--runInBand' : `--maxWorkers=${workers}`);
  args.push('--selectProjects', ...withTests);
  if (covered !== undefined) {
    const least = JSON.stringify({ global: { branches: 100, functions: 100 } });
    args.push(
      '--coverage',
      `--collectCoverageFrom=${covered}/**/*.ts`,
      `--coverageThreshold=${least}`,
    );
    args.push('--coverageReporters=text-summary', `--coverageDirectory=${folder}`);
  }
  const { code } = await run(process.execPath, args, {
    // On stdout jest only says where the report is.
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...env, NODE_OPTIONS: `${env.NODE_OPTIONS ?? ''} ${jestNodeOptions}`.trim() },
    onStart: (jest) => killWhenStuck(jest, report, withTests.join(' and ')),
  });
  const result = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : undefined;
  rmSync(folder, { recursive: true, force: true });
  count(result, code);
}

function hasTests(layer) {
  const folder = path.join(root, 'test', layer);
  const files = existsSync(folder) ? readdirSync(folder, { recursive: true }) : [];
  return files.some((file) => String(file).endsWith('.test.ts'));
}

/** A test that leaves something open keeps jest from ending: a fault to be seen, not to hang on. */
function killWhenStuck(jest, report, name) {
  let reportedAtMs;
  const look = setInterval(() => {
    if (!existsSync(report)) return;
    reportedAtMs ??= performance.now();
    if (performance.now() - reportedAtMs < jestEndsWithinMs) return;
    clearInterval(look);
    console.log(`WARN ${name}: a test left something open, so jest had to be ended`);
    jest.kill('SIGKILL');
  }, 250);
  jest.once('close', () => clearInterval(look));
}

function count(result, code) {
  const states = (result?.testResults ?? []).flatMap(({ assertionResults }) =>
    assertionResults.map(({ status }) => status),
  );
  const passed = states.filter((status) => status === 'passed').length;
  // A file that does not even load has no tests to count.
  const failed = states.length - passed + (result?.numRuntimeErrorTestSuites ?? 1);
  totals.passed += passed;
  // What jest finds wrong beside the tests is one more failure.
  totals.failed += failed === 0 && code !== 0 && code !== null ? 1 : failed;
}

function ensureBrowser() {
  // Where this does not help, the browser tests fail with the command that does.
  if (findProgram('chromium', 'chromium-browser', 'google-chrome') === undefined) {
    installByApt('chromium');
  }
}

async function main(chosen) {
  if (chosen !== undefined && !choices.includes(chosen)) {
    throw new SetUpError(`there is no layer ${chosen}; there are ${choices.join(', ')}`);
  }
  await setUp({ needsRedis: true });
  if (chosen === 'static') await runStatics(2);
  if (chosen === 'nightly') await runLayer({ names: ['nightly'], workers: 1 });
  for (const { names, waits, ...how } of layers) {
    const wanted = names.filter((name) => chosen === undefined || chosen === name);
    const beside = waits && chosen === undefined ? runStatics(1, giveWay) : undefined;
    await runLayer({ names: wanted, ...how });
    await beside;
  }
}

try {
  await main(process.argv[2]);
} catch (error) {
  console.error(error instanceof SetUpError ? `berth: ${error.message}` : error);
  totals.failed += 1;
}
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exit(totals.failed > 0 || totals.passed === 0 ? 1 : 0);
