import { monotonicMs } from '../../src/demo-model-server/pace.ts';

/**
 * The time of a compressed day, in milliseconds of that day. It runs `factor` times as fast as real time, and it
 * stands still whenever the GPU is free though something waits: what the gateway needs between two runs does not
 * shrink with the day, and without the stop a hundred such gaps would shift everything that arrives later against
 * the runs. Waits are not measured on this clock but in real time, gaps included.
 */
export class DayClock {
  readonly #factor: number;
  #dayMs = 0;
  /** Real time at which the day stood at `#dayMs`; undefined while it stands still. */
  #sinceMs: number | undefined;
  #limitMs = Infinity;

  constructor(factor: number) {
    this.#factor = factor;
  }

  /** What time it is. */
  get nowMs(): number {
    if (this.#sinceMs === undefined) return this.#dayMs;
    const passedMs = (monotonicMs() - this.#sinceMs) * this.#factor;
    return Math.min(this.#limitMs, this.#dayMs + passedMs);
  }

  /** Real milliseconds until that time if the clock runs on; Infinity when it does not get there by itself. */
  realMsUntil(dayMs: number): number {
    const nowMs = this.nowMs;
    if (dayMs <= nowMs) return 0;
    if (this.#sinceMs === undefined || dayMs > this.#limitMs) return Infinity;
    return (dayMs - nowMs) / this.#factor;
  }

  /** It goes on, for at most so many milliseconds of the day. */
  go(forMs = Infinity): void {
    this.#dayMs = this.nowMs;
    this.#limitMs = this.#dayMs + forMs;
    this.#sinceMs = monotonicMs();
  }

  /** It stands still; after a whole run, at the run's planned end, however late the real one was. */
  stop(isRunOver = false): void {
    this.#dayMs = isRunOver && Number.isFinite(this.#limitMs) ? this.#limitMs : this.nowMs;
    this.#sinceMs = undefined;
    this.#limitMs = Infinity;
  }
}
