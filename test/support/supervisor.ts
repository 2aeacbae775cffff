import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { processMark } from '../../src/supervise/process-mark.ts';
import type { RunRecord } from '../../src/supervise/run-record.ts';
import { eventually } from './eventually.ts';

/** A supervisor in a process of its own. */
export interface TestSupervisor {
  readonly pid: number;
  /** Everything it and its children printed on both streams, so far. */
  readonly output: () => string;
  /** Its own lines on stderr, so far. */
  readonly complaints: () => string[];
  /** Resolves when the text was printed. */
  readonly says: (text: string) => Promise<void>;
  readonly signal: (name: NodeJS.Signals) => void;
  /** Resolves when it has ended: with its exit code or signal, and how long it took from now (milliseconds). */
  readonly ended: () => Promise<{ how: number | NodeJS.Signals; afterMs: number }>;
  /** Process ids of what it runs now, by name. */
  readonly running: () => Record<string, number>;
}

/** Starts a supervisor's program in a process group of its own, as a terminal does. */
export function startSupervisor(
  dataDir: string,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
): TestSupervisor {
  const child = spawn(process.execPath, command, {
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH ?? '', DATA_DIR: dataDir, ...env },
  });
  const { pid } = child;
  if (pid === undefined) throw new Error('node cannot be started');
  let output = '';
  let complaints = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    complaints += text;
  });
  const killAtExit = (): void => killGroup(pid);
  process.once('exit', killAtExit);
  child.once('exit', () => process.removeListener('exit', killAtExit));
  return {
    pid,
    output: () => output,
    complaints: () => complaints.split('\n').filter((line) => line.startsWith('berth: ')),
    says: async (text) => {
      const look = () => output.includes(text) || child.exitCode !== null;
      await eventually(look, { timeoutMs: 20_000, what: `"${text}" to be printed` });
      if (!output.includes(text)) throw new Error(`it ended without "${text}":\n${output}`);
    },
    signal: (name) => process.kill(pid, name),
    ended: () => endOf(child),
    running: () => recordedProcesses(dataDir),
  };
}

/** The processes that the supervisor of this DATA_DIR has noted, by name. */
export function recordedProcesses(dataDir: string): Record<string, number> {
  const file = path.join(dataDir, 'run.json');
  if (!existsSync(file)) return {};
  const { processes } = JSON.parse(readFileSync(file, 'utf8')) as RunRecord;
  return Object.fromEntries(processes.map(({ name, pid }) => [name, pid]));
}

/** Whether a process of this id runs. */
export function isRunning(pid: number): boolean {
  return processMark(pid) !== undefined;
}

async function endOf(child: ChildProcess) {
  const startedMs = performance.now();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return {
    how: child.signalCode ?? child.exitCode ?? -1,
    afterMs: performance.now() - startedMs,
  };
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
