import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { eventually } from '../test/support/eventually.ts';

const root = fileURLToPath(new URL('../', import.meta.url));

/** Starts a program of this folder whose output goes to a file: nobody reads along while time is measured. */
export function startProgram(
  args: readonly string[],
  env: Record<string, string>,
  outputFile: string,
): ChildProcess {
  const output = openSync(outputFile, 'a');
  const child = spawn(process.execPath, [...args], {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', output, output, 'ipc'],
  });
  closeSync(output);
  const killAtExit = (): void => void child.kill('SIGKILL');
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));
  return child;
}

/** The first message it sends; rejects when it ends before. */
export async function firstMessage<T extends object = { port?: number }>(
  child: ChildProcess,
  type: string,
): Promise<T> {
  return new Promise((resolve, reject) => {
    child.on('message', (message: T & { type: string }) => {
      if (message.type === type) resolve(message);
    });
    child.once('exit', (code) =>
      reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}`)),
    );
  });
}

/** Ends a child in good order and waits for it. */
export async function endProgram(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Berth as it is shipped: ingress, GPU worker and scorer from dist with default settings, logging to a file. */
export class BerthProcesses {
  readonly url: string;
  readonly dataDir: string;
  readonly ingress: ChildProcess;
  readonly worker: ChildProcess;
  readonly scorer: ChildProcess;

  private constructor(
    url: string,
    dataDir: string,
    children: { ingress: ChildProcess; worker: ChildProcess; scorer: ChildProcess },
  ) {
    this.url = url;
    this.dataDir = dataDir;
    this.ingress = children.ingress;
    this.worker = children.worker;
    this.scorer = children.scorer;
  }

  /** Resolves when readyz is green. */
  static async start(redisUrl: string, modelServerUrl: string): Promise<BerthProcesses> {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'berth-bench-'));
    const env = {
      NODE_ENV: 'production',
      REDIS_URL: redisUrl,
      MODEL_SERVER_URL: modelServerUrl,
      DATA_DIR: dataDir,
      PORT: '0',
    };
    const start = (entry: string): ChildProcess =>
      startProgram(
        ['--enable-source-maps', `dist/${entry}`],
        env,
        path.join(dataDir, 'output.log'),
      );
    const children = {
      worker: start('workers/gpu.js'),
      scorer: start('workers/scorer.js'),
      ingress: start('src/server.js'),
    };
    const { port } = await firstMessage(children.ingress, 'listening');
    const berth = new BerthProcesses(`http://127.0.0.1:${port ?? 0}`, dataDir, children);
    await eventually(async () => (await fetch(`${berth.url}/berth/readyz`)).status === 200, {
      timeoutMs: 20_000,
      what: 'readyz to be green',
    });
    return berth;
  }

  /** Ends all three and removes their data. */
  async stop(): Promise<void> {
    await Promise.all([this.ingress, this.worker, this.scorer].map(endProgram));
    await rm(this.dataDir, { recursive: true, force: true });
  }
}
