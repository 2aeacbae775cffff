import { defaultRules } from '../../src/policy/rules.ts';
import { reportOf, waitQuantile } from '../../src/simulate/report.ts';
import { simulate, type RanJob, type Simulation } from '../../src/simulate/run.ts';
import { prepareDay, type DayOptions, type PreparedDay } from './compressed-day.ts';
import type { DayWorkload, PlayedDay } from './day-play.ts';

/** A day as it went, beside what the simulator makes of the same trace under the same rules. */
export interface ComparedDay extends PlayedDay {
  readonly simulated: Simulation;
}

/** Waits of one day against another's, as a ratio of their p95. */
export interface WaitRatio {
  /** With everything stretched as the day is compressed: the gateway's milliseconds count as seconds. */
  readonly stretched: number;
  /** With the gateway's milliseconds as they are. */
  readonly inRealTime: number;
}

/** Days that are played at the same time, each with a GPU, a Redis and processes of its own. */
export class DaysPlayed {
  readonly #days: Readonly<Record<string, readonly [DayWorkload, DayOptions]>>;
  readonly #prepared: PreparedDay[] = [];
  readonly #played: Record<string, Promise<PlayedDay>> = {};

  constructor(days: Readonly<Record<string, readonly [DayWorkload, DayOptions]>>) {
    this.#days = days;
  }

  /** Starts their systems one after the other, then lets each begin when what the one before begins with is queued. */
  async begin(): Promise<void> {
    for (const [workload, options] of Object.values(this.#days)) {
      this.#prepared.push(await prepareDay(workload, options));
    }
    for (const [index, name] of Object.keys(this.#days).entries()) {
      const day = this.#prepared[index]?.play() ?? Promise.reject(new Error(`${name}: not begun`));
      this.#played[name] = day;
      const over = day.then(
        () => undefined,
        () => undefined,
      );
      await Promise.race([this.#prepared[index]?.underWay, over]);
    }
  }

  /** Waits for the end of a day and prints it beside the simulator's. */
  async outcome(name: string): Promise<ComparedDay> {
    const [day, played] = [this.#days[name], this.#played[name]];
    if (day === undefined || played === undefined) throw new RangeError(`${name} is no day here`);
    const [workload, { factor, rules = defaultRules }] = day;
    const real = await played;
    const simulated = untilItsStop(workload, simulate(workload, rules));
    const gaps = real.gapsMs.toSorted((a, b) => a - b);
    const gap = (part: number): string => (gaps[Math.floor(part * gaps.length)] ?? 0).toFixed(1);
    const outcomes = [
      { name: 'through the real system', simulation: real.simulation },
      { name: 'simulated', simulation: simulated },
    ];
    say(
      `\n${name}: ${(real.tookMs / 1000).toFixed(0)} s at 1/${factor}; between two runs ` +
        `${gap(0.5)} ms (p50), ${gap(0.95)} ms (p95)\n${reportOf(outcomes, rules)}`,
    );
    return { ...real, simulated };
  }

  /** Ends all systems; again does nothing. */
  async close(): Promise<void> {
    for (const day of this.#prepared.splice(0)) await day.close();
  }
}

/** Without the run during which a day stops: played, that one is cut off. */
function untilItsStop({ stopMs = Infinity }: DayWorkload, day: Simulation): Simulation {
  return { ...day, ran: day.ran.filter(({ endMs }) => endMs <= stopMs) };
}

/** The p95 of a band's waits against the simulator's. */
export function waitRatio(band: string, day: ComparedDay): WaitRatio {
  const p95Ms = (ran: readonly RanJob[]): number => waitQuantile(runsOf(ran, band), 0.95);
  const simulatedMs = p95Ms(day.simulated.ran);
  return {
    stretched: p95Ms(day.simulation.ran) / simulatedMs,
    inRealTime: p95Ms(day.inRealTime) / simulatedMs,
  };
}

/** A measured figure, for whoever reads the tests' output. */
export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Of these runs those of a band. */
export function runsOf(ran: readonly RanJob[], band: string): RanJob[] {
  return ran.filter(({ job }) => job.band === band);
}

/** What part of these runs' GPU time, swaps included, was a member's. */
export function shareOf(member: string, ran: readonly RanJob[]): number {
  return gpuMs(ran.filter(({ job }) => (job.member as string) === member)) / gpuMs(ran);
}

/** The most that two members' GPU time differed by at the end of any run while both had runs to come, milliseconds. */
export function farthestApartMs(one: string, other: string, ran: readonly RanJob[]): number {
  const lastOf = (member: string): number =>
    ran.findLastIndex(({ job }) => (job.member as string) === member);
  let aheadMs = 0;
  let mostMs = 0;
  for (const run of ran.slice(0, Math.min(lastOf(one), lastOf(other)) + 1)) {
    const member: string = run.job.member;
    if (member === one) aheadMs += gpuMs([run]);
    if (member === other) aheadMs -= gpuMs([run]);
    mostMs = Math.max(mostMs, Math.abs(aheadMs));
  }
  return mostMs;
}

function gpuMs(runs: readonly RanJob[]): number {
  return runs.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}

/** How long a job waited, in milliseconds. */
export function waitMs({ job, startMs }: RanJob): number {
  return startMs - job.arrivalMs;
}
