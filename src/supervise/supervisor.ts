import { setTimeout as delay } from 'node:timers/promises';
import { type GiveUp, KeptProcess, type ProcessSpec } from './kept-process.ts';

/** Milliseconds after the end of the grace at which what still runs is killed, … */
const KILL_WORKERS_AFTER_GRACE_MS = 300;
/** … at which the foundations are, … */
const KILL_FOUNDATIONS_AFTER_GRACE_MS = 800;
/** … and how long the system gets to collect a killed process. */
const KILLED_ENDS_WITHIN_MS = 200;
/** What a foundation gets to end in, however long the grace is; and when the stop is forced. */
const FOUNDATION_ENDS_WITHIN_MS = 5000;
const FORCED_FOUNDATION_ENDS_WITHIN_MS = 500;
const REMIND_EVERY_MS = 30_000;

/** What a supervisor runs and tells. */
export interface SupervisorPlan {
  /** Started one after the other, each when the one before is ready; stopped last. */
  readonly foundations: readonly ProcessSpec[];
  /** Started together, when all foundations are ready; stopped first. */
  readonly workers: readonly ProcessSpec[];
  /** What a stop gives the workers to drain, in milliseconds. */
  readonly graceMs: number;
  readonly onSpawned: (name: string, pid: number) => void;
  readonly onListening: (name: string, port: number) => void;
  /** Called once, when every process is able to work. */
  readonly onReady: () => void;
  /** Tells the operator what went wrong, a line at a time. */
  readonly complain: (line: string) => void;
}

/**
 * Runs processes together: what dies is started again, what dies too often ends them all.
 *
 *     starting -- all are ready               --> serving
 *     any      -- `stop`, or one is given up  --> stopping
 *     stopping -- nothing runs any more       --> over, `run` resolves
 */
export class Supervisor {
  readonly #plan: SupervisorPlan;
  readonly #foundations: readonly KeptProcess[];
  readonly #workers: readonly KeptProcess[];
  readonly #stopAsked = new AbortController();
  readonly #forced = new AbortController();
  #stopAskedAtMs = 0;
  #exitCode = 0;

  constructor(plan: SupervisorPlan) {
    this.#plan = plan;
    const keep = (spec: ProcessSpec) =>
      new KeptProcess(spec, {
        spawned: plan.onSpawned,
        listening: plan.onListening,
        died: (name, how, restartAfterMs) =>
          plan.complain(`${name} ended (${how}), starting it again in ${restartAfterMs / 1000} s`),
        gaveUp: (name, why) => this.#giveUp(name, why),
      });
    this.#foundations = plan.foundations.map(keep);
    this.#workers = plan.workers.map(keep);
  }

  /**
   * Starts everything and resolves when nothing runs any more, with the exit code: 0 after `stop`, 1
   * when a process was given up or the stop was forced. Call it once.
   */
  async run(): Promise<number> {
    const reminder = setInterval(() => this.#remind(), REMIND_EVERY_MS);
    try {
      await this.#startAll();
    } finally {
      clearInterval(reminder);
    }
    await aborted(this.#stopAsked.signal);
    await this.#stopAll();
    return this.#exitCode;
  }

  /**
   * Begins the ordered stop: workers get SIGTERM at once and SIGKILL at grace + 0.3 s, then the
   * foundations end; over at most 1 s after the grace. Calling it again changes nothing.
   */
  stop(): void {
    if (this.#stopAsked.signal.aborted) return;
    this.#stopAskedAtMs = performance.now();
    this.#stopAsked.abort();
  }

  /** Ends everything at once, also in the middle of `stop`. */
  force(): void {
    this.#exitCode = 1;
    this.#forced.abort();
    this.stop();
  }

  /** Kills what runs without waiting for anything: for the last moment of this process. */
  killNow(): void {
    for (const kept of [...this.#workers, ...this.#foundations]) kept.kill();
  }

  async #startAll(): Promise<void> {
    const { signal } = this.#stopAsked;
    for (const foundation of this.#foundations) {
      foundation.start();
      await Promise.race([foundation.ready, aborted(signal)]);
      if (signal.aborted) return;
    }
    for (const worker of this.#workers) worker.start();
    const allReady = Promise.all(this.#workers.map(({ ready }) => ready));
    await Promise.race([allReady, aborted(signal)]);
    if (!signal.aborted) this.#plan.onReady();
  }

  async #stopAll(): Promise<void> {
    const graceOverMs = this.#stopAskedAtMs + this.#plan.graceMs;
    for (const worker of this.#workers) worker.stop();
    await this.#overBy(this.#workers, graceOverMs + KILL_WORKERS_AFTER_GRACE_MS, 0);
    for (const foundation of this.#foundations) foundation.stop();
    const killAtMs = Math.min(
      graceOverMs + KILL_FOUNDATIONS_AFTER_GRACE_MS,
      performance.now() + FOUNDATION_ENDS_WITHIN_MS,
    );
    await this.#overBy(this.#foundations, killAtMs, FORCED_FOUNDATION_ENDS_WITHIN_MS);
  }

  /** Waits until these are over; kills what is not at the given time, or so long after a forced stop. */
  async #overBy(
    processes: readonly KeptProcess[],
    killAtMs: number,
    killAfterForceMs: number,
  ): Promise<void> {
    const allOver = Promise.all(processes.map(({ over }) => over));
    const done = new AbortController();
    const wait = (ms: number) => delay(Math.max(0, ms), undefined, { signal: done.signal });
    const forced = aborted(this.#forced.signal).then(() => wait(killAfterForceMs));
    await Promise.race([allOver, forced, wait(killAtMs - performance.now())]);
    for (const kept of processes) kept.kill();
    await Promise.race([allOver, wait(KILLED_ENDS_WITHIN_MS)]);
    done.abort();
  }

  #giveUp(name: string, why: GiveUp): void {
    if (this.#stopAsked.signal.aborted) return;
    const { complain } = this.#plan;
    if (why.because === 'cannot_start') complain(`${name} cannot be started: ${why.message}`);
    if (why.because === 'died_too_often') {
      complain(`${name} died 5 times within a minute, giving up; its last lines:`);
      for (const line of why.lines) complain(`  ${line}`);
    }
    this.#exitCode = 1;
    this.stop();
  }

  #remind(): void {
    const missing = [...this.#foundations, ...this.#workers].filter(({ wasReady }) => !wasReady);
    this.#plan.complain(`still waiting for ${missing.map(({ spec }) => spec.name).join(', ')}`);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
