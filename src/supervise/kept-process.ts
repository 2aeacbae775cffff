import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessMessage } from '../adapters/process/lifecycle.ts';
import { LastLines } from './last-lines.ts';
import { restartPolicy } from './restart-policy.ts';

/** How long what a dead process wrote may take to arrive (milliseconds). */
const LAST_WORDS_MS = 300;

/** Exit code of a process that has itself said what is wrong with its configuration. */
const CONFIGURATION_FAULT = 2;

/** One process the supervisor keeps running. */
export interface ProcessSpec {
  /** As it is named in lines to the operator: `ingress`, `gpu`, `scorer`, `redis`, `demo`. */
  readonly name: string;
  readonly command: string;
  /** Asked at every start, as `env` is. */
  readonly args: () => readonly string[];
  /** Asked at every start, so that a restart gets the port of the first one. */
  readonly env: () => NodeJS.ProcessEnv;
  /** In a process group of its own, out of reach of a terminal's signals. */
  readonly isDetached: boolean;
  /**
   * How it is known to be able to work: it sends this message over IPC, or the function resolves. The
   * function tries until it succeeds; `ended` is aborted when the process is no more.
   */
  readonly readiness: ProcessMessage['type'] | ((ended: AbortSignal) => Promise<void>);
  /** Its last words where they are not on stderr. */
  readonly lastLines?: () => string[];
}

/** Why a process is not started again. */
export type GiveUp =
  /** It could not even be started. */
  | { readonly because: 'cannot_start'; readonly message: string }
  /** It has said on stderr what is wrong with its configuration. */
  | { readonly because: 'configuration_fault' }
  /** It died five times within a minute; `lines` are its last. */
  | { readonly because: 'died_too_often'; readonly lines: readonly string[] };

/** What happens to a kept process; called on the supervisor's side, never after `ended` resolved. */
export interface ProcessReports {
  readonly spawned: (name: string, pid: number) => void;
  readonly listening: (name: string, port: number) => void;
  readonly died: (name: string, how: string, restartAfterMs: number) => void;
  readonly gaveUp: (name: string, why: GiveUp) => void;
}

/**
 * Keeps one process running.
 *
 *     idle     -- start                     --> running
 *     running  -- it died                   --> waiting (0.1 s doubling to 5 s)
 *     waiting  -- the time is over          --> running
 *     running  -- it died once too often    --> over (`gaveUp`)
 *     any      -- stop or kill, and it died --> over
 */
export class KeptProcess {
  readonly spec: ProcessSpec;
  /** Resolves when it can work for the first time. */
  readonly ready: Promise<void>;
  /** Resolves when it does not run and will not be started again. */
  readonly over: Promise<void>;

  readonly #reports: ProcessReports;
  readonly #policy = restartPolicy();
  readonly #lastLines = new LastLines();
  #resolveReady!: () => void;
  #resolveOver!: () => void;
  #process: ChildProcess | undefined;
  #restartTimer: NodeJS.Timeout | undefined;
  #isReady = false;
  #isStopping = false;

  constructor(spec: ProcessSpec, reports: ProcessReports) {
    this.spec = spec;
    this.#reports = reports;
    this.ready = new Promise((resolve) => (this.#resolveReady = resolve));
    this.over = new Promise((resolve) => (this.#resolveOver = resolve));
  }

  /** Whether it was able to work at least once. */
  get wasReady(): boolean {
    return this.#isReady;
  }

  /** Starts it; call once, and not after `stop`. */
  start(): void {
    const { command, args, env, isDetached, readiness } = this.spec;
    const child = spawn(command, args(), {
      env: env(),
      detached: isDetached,
      stdio: [
        'ignore',
        'inherit',
        'pipe',
        ...(typeof readiness === 'string' ? (['ipc'] as const) : []),
      ],
    });
    const startedMs = performance.now();
    const ended = new AbortController();
    this.#process = child;
    if (child.pid !== undefined) this.#reports.spawned(this.spec.name, child.pid);
    child.stderr?.on('data', (piece: Buffer) => {
      process.stderr.write(piece);
      this.#lastLines.add(piece.toString('utf8'));
    });
    child.on('message', (message) => this.#heard(message));
    // Signals to a process that has just ended, and a closed channel, end in 'exit' anyway.
    child.on('error', (error) => {
      if (child.pid === undefined) this.#cannotStart(error);
    });
    child.once('exit', (code, signal) => {
      ended.abort();
      const livedMs = performance.now() - startedMs;
      void lastWords(child).then(() => this.#died(code, signal, livedMs));
    });
    if (typeof readiness !== 'string') {
      readiness(ended.signal).then(
        () => this.#becameReady(),
        () => undefined,
      );
    }
  }

  /** Asks it to end (SIGTERM) and never starts it again. */
  stop(): void {
    this.#end('SIGTERM');
  }

  /** Ends it at once (SIGKILL) and never starts it again. */
  kill(): void {
    this.#end('SIGKILL');
  }

  #end(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    if (this.#process === undefined) this.#resolveOver();
    else this.#process.kill(signal);
  }

  #heard(message: unknown): void {
    if (typeof message !== 'object' || message === null || !('type' in message)) return;
    const heard = message as ProcessMessage;
    if (heard.type === 'listening') this.#reports.listening(this.spec.name, heard.port);
    if (heard.type === this.spec.readiness) this.#becameReady();
  }

  #becameReady(): void {
    this.#isReady = true;
    this.#resolveReady();
  }

  #died(code: number | null, signal: NodeJS.Signals | null, livedMs: number): void {
    this.#process = undefined;
    if (this.#isStopping) {
      this.#resolveOver();
    } else if (code === CONFIGURATION_FAULT && !this.#isReady) {
      this.#giveUp({ because: 'configuration_fault' });
    } else {
      this.#startAgain(signal ?? `exit code ${code ?? 'unknown'}`, livedMs);
    }
  }

  #startAgain(how: string, livedMs: number): void {
    const verdict = this.#policy.afterDeath(performance.now(), livedMs);
    if (verdict === 'give_up') {
      const lines = this.spec.lastLines?.() ?? this.#lastLines.lines();
      this.#giveUp({ because: 'died_too_often', lines });
      return;
    }
    this.#reports.died(this.spec.name, how, verdict.restartAfterMs);
    this.#restartTimer = setTimeout(() => this.start(), verdict.restartAfterMs);
  }

  #cannotStart(error: Error): void {
    this.#process = undefined;
    this.#giveUp({ because: 'cannot_start', message: error.message });
  }

  #giveUp(why: GiveUp): void {
    this.#isStopping = true;
    this.#resolveOver();
    this.#reports.gaveUp(this.spec.name, why);
  }
}

/** Resolves when all the process wrote has arrived; not later, should somebody else hold its stderr. */
async function lastWords(child: ChildProcess): Promise<void> {
  await Promise.race([once(child, 'close'), delay(LAST_WORDS_MS, undefined, { ref: false })]);
}
