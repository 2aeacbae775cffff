/**
 * What has to be there before anything of ours can run: packages, the built code, redis-server.
 * Plain Node without packages. Running it again costs a fraction of a second and no network.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram, installByApt } from './system-packages.mjs';

const root = fileURLToPath(new URL('../', import.meta.url));
const leastNode = [20, 19];
const lockFile = path.join(root, 'package-lock.json');
/** Written after an installation: the hash of the lock file it was made from. */
const stampFile = path.join(root, 'node_modules/.installed-from');
const redisHint =
  'redis-server is missing; install it and run this again: ' +
  'apt: sudo apt-get install -y redis-server | dnf: sudo dnf install -y redis | ' +
  'apk: sudo apk add redis | brew: brew install redis | docker: docker run -d --name berth-redis ' +
  '-p 127.0.0.1:6379:6379 redis:7 redis-server --appendonly yes --maxmemory-policy noeviction, ' +
  'then REDIS_URL=redis://127.0.0.1:6379 npm start';

/** A set-up that cannot be finished; the message is one line that says what to do. */
export class SetUpError extends Error {}

/**
 * Brings everything up to date. Two runs at once wait for each other.
 *
 * @param {{ needsRedis: boolean }} needs whether a redis-server must be on PATH afterwards.
 * @throws {SetUpError}
 */
export async function setUp({ needsRedis }) {
  checkNode();
  const release = await takeTurn();
  try {
    installPackages();
    await buildWhenStale();
    if (needsRedis) ensureRedis();
  } finally {
    release();
  }
}

/** Runs `setUp`; on failure prints its one line and ends the process with 1. */
export async function setUpOrExit(needs) {
  try {
    await setUp(needs);
  } catch (error) {
    if (!(error instanceof SetUpError)) throw error;
    console.error(`berth: ${error.message}`);
    process.exit(1);
  }
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > leastNode[0] || (major === leastNode[0] && minor >= leastNode[1])) return;
  const running = process.versions.node;
  throw new SetUpError(`Node ${leastNode.join('.')} or newer is needed, this is ${running}`);
}

/**
 * Waits until no other set-up works in this folder; the kernel frees the turn of one that is killed.
 * Resolves with the function that gives the turn back.
 */
async function takeTurn() {
  const digest = createHash('sha256').update(`set-up:${root}`).digest('hex');
  const address =
    process.platform === 'linux'
      ? { path: `\0${`berth-${digest}`.padEnd(107, '-')}` }
      : { host: '127.0.0.1', port: 20_000 + (parseInt(digest.slice(0, 8), 16) % 12_000) };
  for (let attempt = 0; ; attempt += 1) {
    const server = await new Promise((resolve, reject) => {
      const candidate = net.createServer((caller) => caller.destroy());
      candidate.once('error', (error) =>
        error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
      );
      candidate.listen({ ...address, exclusive: true }, () => resolve(candidate));
    });
    if (server !== undefined) return () => server.close();
    if (attempt === 5) console.error('berth: waiting for another set-up of this folder');
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function installPackages() {
  const hash = createHash('sha256').update(readFileSync(lockFile)).digest('hex');
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === hash) return;
  if (!isInstalled()) {
    console.error('berth: installing packages (npm ci)');
    const { status, error } = spawnSync(
      'npm',
      ['ci', '--include=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'],
      // npm's summary is no news, its errors are.
      { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
    );
    if (error !== undefined) throw new SetUpError(`npm cannot be run: ${error.message}`);
    if (status !== 0) throw new SetUpError('npm ci failed, see above; run this again');
  }
  writeFileSync(stampFile, hash);
}

/** Whether node_modules, however it came there, holds what the lock file asks for. */
function isInstalled() {
  const hidden = path.join(root, 'node_modules/.package-lock.json');
  if (!existsSync(hidden)) return false;
  const wanted = JSON.parse(readFileSync(lockFile, 'utf8')).packages;
  const present = JSON.parse(readFileSync(hidden, 'utf8')).packages;
  const isWanted = ([name, { version }]) => wanted[name]?.version === version;
  const isThere = ([name, { version, optional }]) =>
    name === '' || optional === true || present[name]?.version === version;
  return Object.entries(present).every(isWanted) && Object.entries(wanted).every(isThere);
}

async function buildWhenStale() {
  const { build, isBuilt } = await import('./build.mjs');
  if (isBuilt()) return;
  console.error('berth: building');
  if (!build()) throw new SetUpError('the build failed, see above');
}

function ensureRedis() {
  if (findProgram('redis-server') !== undefined) return;
  installByApt('redis-server');
  if (findProgram('redis-server') === undefined) throw new SetUpError(redisHint);
}
