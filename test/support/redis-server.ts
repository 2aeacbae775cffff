import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { redisCommand } from '../../src/supervise/redis-command.ts';
import { eventually } from './eventually.ts';

/** A real redis-server of one test, on a unix socket, without a TCP port. */
export interface TestRedis {
  /** `unix://` and the socket's path, as REDIS_URL takes it. The same after a restart. */
  readonly url: string;
  readonly socket: string;
  /** Process id of the running server; another one after `restart`. */
  readonly pid: number;
  /** Sends a signal; resolves when the server has ended, for SIGSTOP and SIGCONT at once. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same data, ending it in good order first if it still runs. */
  restart(): Promise<void>;
  /** Ends it and removes its data, unless `dir` was given. Safe to call twice. */
  stop(): Promise<void>;
}

/** How the server writes, and where. */
export interface TestRedisOptions {
  /** When the append-only file is flushed; default `everysec`, the fast one. */
  fsync?: 'always' | 'everysec';
  /** An existing folder with a short path; kept by `stop`. Default: a new one under the temp dir. */
  dir?: string;
}

/** Starts a redis-server (AOF on, noeviction) and resolves when it answers. */
export async function startRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const dir = options.dir ?? (await mkdtemp(path.join(tmpdir(), 'berth-redis-')));
  const socket = path.join(dir, 'redis.sock');
  const launch = () => launchRedis(dir, socket, options.fsync ?? 'everysec');
  let server = await launch();

  return {
    url: `unix://${socket}`,
    socket,
    get pid() {
      return pidOf(server);
    },
    async kill(signal) {
      server.kill(signal);
      if (signal !== 'SIGSTOP' && signal !== 'SIGCONT') await ended(server);
    },
    async restart() {
      await terminate(server);
      server = await launch();
    },
    async stop() {
      await terminate(server);
      if (options.dir === undefined) await rm(dir, { recursive: true, force: true });
    },
  };
}

async function launchRedis(dir: string, socket: string, fsync: string): Promise<ChildProcess> {
  const settings = [
    ...['--port', '0', '--unixsocket', socket, '--unixsocketperm', '700', '--dir', dir],
    ...['--appendonly', 'yes', '--appendfsync', fsync, '--save', ''],
    ...['--maxmemory-policy', 'noeviction', '--loglevel', 'warning'],
  ];
  const server = spawn('redis-server', settings, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  server.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  // A test run that is broken off must not leave its server behind.
  const killAtExit = () => server.kill('SIGKILL');
  process.once('exit', killAtExit);
  server.once('exit', () => process.removeListener('exit', killAtExit));
  await once(server, 'spawn');
  await eventually(
    async () => {
      if (server.exitCode !== null) throw new Error(`redis-server ended at start: ${output}`);
      return (await redisCommand(socket, ['PING'], 1000)) === 'PONG';
    },
    { timeoutMs: 10_000, what: 'redis-server to answer PING' },
  );
  return server;
}

function pidOf(server: ChildProcess): number {
  if (server.pid === undefined) throw new Error('redis-server was never started');
  return server.pid;
}

async function terminate(server: ChildProcess): Promise<void> {
  if (hasEnded(server)) return;
  server.kill('SIGCONT');
  server.kill('SIGTERM');
  await ended(server);
}

async function ended(server: ChildProcess): Promise<void> {
  if (!hasEnded(server)) await once(server, 'exit');
}

function hasEnded(server: ChildProcess): boolean {
  return server.exitCode !== null || server.signalCode !== null;
}
