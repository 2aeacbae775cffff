import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pidFileIn } from './embedded-redis.ts';
import { processMark } from './process-mark.ts';
import { redisCommand } from './redis-command.ts';
import type { RecordedProcess, RunRecord } from './run-record.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';

const LOOK_EVERY_MS = 25;
/** Redis has every write on disk already; this is its time to say goodbye. */
const REDIS_ENDS_WITHIN_MS = 5000;
const REDIS_ANSWERS_WITHIN_MS = 500;
/** Longer, and it hangs in the kernel: nothing helps. */
const KILLED_ENDS_WITHIN_MS = 5000;

/** Whom to clean up after, and how long that may take. */
export interface LeftoverSearch {
  readonly dataDir: string;
  /** What the run before left; null when it ended well. */
  readonly record: RunRecord | null;
  /** How long orphaned processes may drain, in milliseconds; after it they are killed. */
  readonly drainMs: number;
  /** Tells the operator why the start takes longer. */
  readonly say: (line: string) => void;
}

/**
 * Ends what a killed supervisor left behind. Its Node processes have noticed and drain by themselves,
 * over the Redis that is left too: they are waited for, then Redis is ended, so that nobody writes
 * to the data or holds the port or the GPU when the new ones start.
 *
 * @throws StartRefused when one of them cannot be ended.
 */
export async function endLeftovers({
  dataDir,
  record,
  drainMs,
  say,
}: LeftoverSearch): Promise<void> {
  const orphans = (record?.processes ?? []).filter(({ name }) => name !== 'redis');
  if (orphans.some(isAlive)) say('the run before was killed; waiting for its processes to end');
  await Promise.all(orphans.map((orphan) => endedWithin(orphan, drainMs)));
  const redis = await leftoverRedis(dataDir, record);
  if (redis !== null) {
    say(`stopping the redis-server (pid ${redis.pid}) of the run before`);
    signal(redis, 'SIGTERM');
    await endedWithin(redis, REDIS_ENDS_WITHIN_MS);
  }
  rmSync(pidFileIn(dataDir), { force: true });
  if (record?.socketFolder != null) rmSync(record.socketFolder, { recursive: true, force: true });
}

/**
 * Makes sure that no redis-server that is not ours writes to this DATA_DIR: another container that shares
 * the folder has a kernel lock of its own.
 *
 * @throws StartRefused when one answers on the socket.
 */
export async function checkNoOtherRedis(dataDir: string): Promise<void> {
  if ((await redisPidBehind(dataDir)) === null) return;
  throw new StartRefused(`another redis-server uses DATA_DIR ${dataDir}; stop that first`);
}

/** The redis-server of the pid file, if that process really is one of this DATA_DIR. */
async function leftoverRedis(
  dataDir: string,
  record: RunRecord | null,
): Promise<RecordedProcess | null> {
  const pid = readPid(pidFileIn(dataDir));
  const recorded = record?.processes.find(({ name }) => name === 'redis');
  if (recorded !== undefined && isAlive(recorded)) return recorded;
  const mark = pid === null ? undefined : processMark(pid);
  if (pid === null || mark === undefined) return null;
  // Without a record a process id proves nothing; the server behind the socket says its own.
  return (await redisPidBehind(dataDir)) === pid ? { name: 'redis', pid, mark } : null;
}

/** The process id that the server behind the socket in DATA_DIR gives, or null when nobody answers. */
async function redisPidBehind(dataDir: string): Promise<number | null> {
  const socket = path.join(dataDir, 'redis.sock');
  const ask = redisCommand(socket, ['INFO', 'server'], REDIS_ANSWERS_WITHIN_MS);
  const info = await ask.catch(() => '');
  const pid = /^process_id:(\d+)\r?$/m.exec(info)?.[1];
  return pid === undefined ? null : Number(pid);
}

function readPid(file: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
    return pid > 1 ? pid : null;
  } catch {
    return null;
  }
}

async function endedWithin(orphan: RecordedProcess, limitMs: number): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (isAlive(orphan)) {
    const overdueMs = performance.now() - deadline;
    if (overdueMs >= 0) signal(orphan, 'SIGKILL');
    if (overdueMs >= KILLED_ENDS_WITHIN_MS) {
      throw new StartRefused(`${orphan.name} (pid ${orphan.pid}) of the run before does not end`);
    }
    await delay(LOOK_EVERY_MS);
  }
}

function isAlive({ pid, mark }: RecordedProcess): boolean {
  return processMark(pid) === mark;
}

function signal({ pid }: RecordedProcess, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended in the meantime, which is what was wanted.
  }
}
