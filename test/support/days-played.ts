import { defaultRules } from '../../src/policy/rules.ts';
import { reportOf } from '../../src/simulate/report.ts';
import { simulate, type RanJob, type Simulation } from '../../src/simulate/run.ts';
import { prepareDay, type DayOptions, type PreparedDay } from './compressed-day.ts';
import type { DayWorkload, PlayedDay } from './day-play.ts';

/** A day as it went, beside what the simulator makes of the same trace. */
export interface ComparedDay extends PlayedDay {
  readonly simulated: Simulation;
}

/** Days that are played at the same time, each with a GPU, a Redis and processes of its own. */
export class DaysPlayed {
  readonly #days: Readonly<Record<string, readonly [DayWorkload, DayOptions]>>;
  readonly #prepared: PreparedDay[] = [];
  readonly #played: Record<string, Promise<PlayedDay>> = {};

  constructor(days: Readonly<Record<string, readonly [DayWorkload, DayOptions]>>) {
    this.#days = days;
  }

  /** Starts their systems one after the other, then lets all of them begin. */
  async begin(): Promise<void> {
    for (const [workload, options] of Object.values(this.#days)) {
      this.#prepared.push(await prepareDay(workload, options));
    }
    for (const [index, name] of Object.keys(this.#days).entries()) {
      const day = this.#prepared[index]?.play() ?? Promise.reject(new Error(`${name}: not begun`));
      day.catch(() => undefined);
      this.#played[name] = day;
    }
  }

  /** Waits for the end of a day and prints it beside the simulator's. */
  async outcome(name: string): Promise<ComparedDay> {
    const [day, played] = [this.#days[name], this.#played[name]];
    if (day === undefined || played === undefined) throw new RangeError(`${name} is no day here`);
    const [workload, { factor }] = day;
    const real = await played;
    const simulated = simulate(workload, defaultRules);
    const gaps = real.gapsMs.toSorted((a, b) => a - b);
    const gap = (part: number): string => (gaps[Math.floor(part * gaps.length)] ?? 0).toFixed(1);
    const outcomes = [
      { name: 'through the real system', simulation: real.simulation },
      { name: 'simulated', simulation: simulated },
    ];
    say(
      `\n${name}: ${(real.tookMs / 1000).toFixed(0)} s at 1/${factor}; between two runs ` +
        `${gap(0.5)} ms (p50), ${gap(0.95)} ms (p95)\n${reportOf(outcomes, defaultRules)}`,
    );
    return { ...real, simulated };
  }

  /** Ends all systems; again does nothing. */
  async close(): Promise<void> {
    for (const day of this.#prepared.splice(0)) await day.close();
  }
}

/** A measured figure, for whoever reads the tests' output. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** The runs of a band. */
export function runsOf(day: Simulation, band: string): RanJob[] {
  return day.ran.filter(({ job }) => job.band === band);
}

/** GPU time of these runs, swaps included, in milliseconds. */
export function gpuMs(runs: readonly RanJob[]): number {
  return runs.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}

/** How long a job waited, in milliseconds. */
export function waitMs({ job, startMs }: RanJob): number {
  return startMs - job.arrivalMs;
}
