import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessSpec } from './kept-process.ts';
import { lastLinesOfFile } from './last-lines.ts';
import { redisCommand } from './redis-command.ts';

/** Longer socket paths do not fit into what every kernel takes (104 bytes with the final NUL). */
const LONGEST_SOCKET_PATH = 100;
const SHARE_OF_MEMORY = 0.25;
const PING_EVERY_MS = 20;
const PING_ANSWERS_WITHIN_MS = 2000;

/** Where the embedded Redis keeps its things. */
export interface RedisPlace {
  /** Its working folder, with the append-only files and its log. */
  readonly folder: string;
  readonly pidFile: string;
  readonly socket: string;
  /** The folder outside DATA_DIR that was made for the socket, or null when the socket is in DATA_DIR. */
  readonly socketFolder: string | null;
}

/** How the embedded Redis writes. */
export interface RedisSettings {
  readonly fsync: 'always' | 'everysec';
  /** Bytes; the default of {@link quarterOfMemory}. */
  readonly maxMemoryBytes: number;
}

/**
 * Makes the folders (0700) of an embedded Redis. A socket path that would be over 100 bytes long goes
 * to a new folder under the temp dir; {@link clearRedisPlace} removes it.
 *
 * @param dataDir DATA_DIR, absolute; it exists.
 */
export function prepareRedisPlace(dataDir: string): RedisPlace {
  const folder = path.join(dataDir, 'redis');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  const pidFile = pidFileIn(dataDir);
  const socket = path.join(dataDir, 'redis.sock');
  if (Buffer.byteLength(socket) <= LONGEST_SOCKET_PATH) {
    return { folder, pidFile, socket, socketFolder: null };
  }
  const socketFolder = mkdtempSync(path.join(shortTempDir(), 'berth-'));
  return { folder, pidFile, socket: path.join(socketFolder, 'redis.sock'), socketFolder };
}

/** Where the embedded Redis of this DATA_DIR writes its process id. */
export function pidFileIn(dataDir: string): string {
  return path.join(dataDir, 'redis.pid');
}

/** Removes what only means something while Redis runs: the socket, its folder, the pid file. */
export function clearRedisPlace(place: RedisPlace): void {
  rmSync(place.socket, { force: true });
  rmSync(place.pidFile, { force: true });
  if (place.socketFolder !== null) rmSync(place.socketFolder, { recursive: true, force: true });
}

/** A quarter of the memory this process may use, in bytes: of the machine's, or of its control group's. */
export function quarterOfMemory(): number {
  const constrained = process.constrainedMemory();
  const total = constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
  return Math.floor(total * SHARE_OF_MEMORY);
}

/** How the supervisor runs it: reached over its socket alone, every job on disk before it is acknowledged. */
export function embeddedRedisSpec(place: RedisPlace, settings: RedisSettings): ProcessSpec {
  const logFile = path.join(place.folder, 'redis.log');
  return {
    name: 'redis',
    command: 'redis-server',
    args: () => [
      ...['--port', '0', '--unixsocket', place.socket, '--unixsocketperm', '700'],
      ...['--dir', place.folder, '--pidfile', place.pidFile, '--daemonize', 'no'],
      ...['--appendonly', 'yes', '--appendfsync', settings.fsync, '--save', ''],
      ...['--maxmemory', String(settings.maxMemoryBytes), '--maxmemory-policy', 'noeviction'],
      // A slow script's arguments may hold the beginning of a prompt.
      ...['--slowlog-max-len', '0'],
      ...['--loglevel', 'warning', '--logfile', logFile],
    ],
    env: () => process.env,
    isDetached: true,
    readiness: (ended) => answersPing(place.socket, ended),
    lastLines: () => lastLinesOfFile(logFile),
  };
}

/** Resolves when Redis answers, which it does when all its data is loaded; rejects when `ended` is aborted. */
async function answersPing(socket: string, ended: AbortSignal): Promise<void> {
  for (;;) {
    ended.throwIfAborted();
    const answer = await redisCommand(socket, ['PING'], PING_ANSWERS_WITHIN_MS).catch(() => '');
    if (answer === 'PONG') return;
    await delay(PING_EVERY_MS);
  }
}

function shortTempDir(): string {
  const dir = tmpdir();
  return Buffer.byteLength(dir) <= LONGEST_SOCKET_PATH - 30 ? dir : '/tmp';
}
