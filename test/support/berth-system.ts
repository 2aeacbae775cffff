import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';
import { startRedis } from './redis-server.ts';
import type { TestRedis } from './redis-server.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const ENTRY = {
  ingress: 'dist/src/server.js',
  gpu: 'dist/workers/gpu.js',
  scorer: 'dist/workers/scorer.js',
} as const;

/** Kinds of Berth's processes. */
export type ProcessName = keyof typeof ENTRY;

/** One of Berth's processes in a test. */
export interface BerthProcess {
  child: ChildProcess;
  /** Everything it printed, both streams. */
  output: () => string;
  /** Sends a signal and waits for the end. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** An ingress beside the system's own: on the same Redis and DATA_DIR, at an address of its own. */
export interface FurtherIngress {
  readonly url: string;
  /** The one that runs; another one after `restart`. */
  readonly process: BerthProcess;
  /** Asks it to stop (SIGTERM), then starts it again at the same address. Resolves when its readyz is green. */
  restart(): Promise<void>;
}

/** What a system of real processes is made of. */
export interface SystemOptions {
  modelServerUrl: string;
  fsync?: 'always' | 'everysec';
  env?: Record<string, string>;
  /** Processes to leave out. */
  without?: readonly ProcessName[];
}

/** What must not outlive the test run. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Starts one process from dist with IPC, as the supervisor does; resolves with its first `listening` port or 0. */
export function startBerthProcess(
  name: ProcessName,
  env: Record<string, string>,
): BerthProcess & { port: Promise<number> } {
  const child = spawn(process.execPath, ['--enable-source-maps', path.join(root, ENTRY[name])], {
    env: { PATH: process.env.PATH ?? '', NODE_ENV: 'test', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  }
  running.add(child);
  child.once('exit', () => running.delete(child));
  const port = new Promise<number>((resolve, reject) => {
    child.on('message', (message: { type: string; port?: number }) => {
      if (message.type === 'listening') resolve(message.port ?? 0);
    });
    child.once('exit', () => reject(new Error(`${name} ended: ${text}`)));
  });
  port.catch(() => undefined);
  return {
    child,
    port,
    output: () => text,
    kill: async (signal = 'SIGKILL') => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(signal);
      await once(child, 'exit');
    },
  };
}

/** All of Berth's processes on a Redis of their own, in front of a given model server. */
export class BerthSystem {
  readonly redis: TestRedis;
  readonly dataDir: string;
  readonly processes: Partial<Record<ProcessName, BerthProcess>> = {};
  url = '';
  private readonly options: SystemOptions;
  private port = 0;
  private readonly all: BerthProcess[] = [];

  private constructor(options: SystemOptions, redis: TestRedis, dataDir: string) {
    this.options = options;
    this.redis = redis;
    this.dataDir = dataDir;
  }

  /** Resolves when the system is ready (with processes left out: when the others run). */
  static async start(options: SystemOptions): Promise<BerthSystem> {
    const redis = await startRedis({ fsync: options.fsync ?? 'everysec' });
    const system = new BerthSystem(
      options,
      redis,
      await mkdtemp(path.join(tmpdir(), 'berth-data-')),
    );
    try {
      for (const name of ['gpu', 'scorer', 'ingress'] as const) {
        if (options.without?.includes(name) !== true) await system.startProcess(name);
      }
      if ((options.without ?? []).length === 0) await system.ready();
    } catch (error) {
      await system.stop();
      throw error;
    }
    return system;
  }

  /** The environment of its processes. */
  env(): Record<string, string> {
    return {
      REDIS_URL: this.redis.url,
      MODEL_SERVER_URL: this.options.modelServerUrl,
      DATA_DIR: this.dataDir,
      PORT: String(this.port),
      LOG_LEVEL: 'info',
      SCORER_INTERVAL_SECONDS: '1',
      ...this.options.env,
    };
  }

  /** Starts (again) one of the processes. */
  async startProcess(name: ProcessName): Promise<BerthProcess> {
    const started = startBerthProcess(name, this.env());
    this.processes[name] = started;
    this.all.push(started);
    if (name === 'ingress') {
      this.port = await started.port;
      this.url = `http://127.0.0.1:${this.port}`;
    }
    return started;
  }

  /** Asks one of the processes to stop (SIGTERM), then starts it again. */
  async restartProcess(name: ProcessName): Promise<BerthProcess> {
    await this.processes[name]?.kill('SIGTERM');
    return this.startProcess(name);
  }

  /** Starts one more ingress; resolves when its readyz is green. It is stopped with the system. */
  async addIngress(env: Record<string, string> = {}): Promise<FurtherIngress> {
    const start = (port: number): ReturnType<typeof startBerthProcess> => {
      const one = startBerthProcess('ingress', { ...this.env(), ...env, PORT: String(port) });
      this.all.push(one);
      return one;
    };
    let running = start(0);
    const port = await running.port;
    const url = `http://127.0.0.1:${port}`;
    await this.ready(url);
    return {
      url,
      get process() {
        return running;
      },
      restart: async () => {
        await running.kill('SIGTERM');
        running = start(port);
        await running.port;
        await this.ready(url);
      },
    };
  }

  /** Resolves when readyz is green, of the system's own ingress unless another is named. */
  async ready(url = this.url): Promise<void> {
    await eventually(
      async () => {
        const response = await fetch(`${url}/berth/readyz`);
        if (response.status !== 200) throw new Error(await response.text());
        return true;
      },
      { timeoutMs: 15_000, what: 'readyz to be green' },
    );
  }

  /** Everything all processes of this system ever printed. */
  output(): string {
    return this.all.map((one) => one.output()).join('\n');
  }

  async stop(): Promise<void> {
    await Promise.all(this.all.map(async (one) => one.kill('SIGKILL')));
    await this.redis.stop();
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
