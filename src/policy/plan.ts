import { decide } from './decide.ts';
import type { WaitingJob } from './job.ts';
import { Ledger } from './ledger.ts';
import type { Rules } from './rules.ts';

/** How long something takes: half of the time at most `p50Ms`, nine times in ten at most `p90Ms`. */
export interface Estimate {
  readonly p50Ms: number;
  readonly p90Ms: number;
}

/** What the plan knows of the time that jobs take. */
export interface PlanOutlook {
  readonly nowMs: number;
  /** The model in GPU memory; null when it is not known, which counts as none. */
  readonly residentModel: string | null;
  /** GPU time of a job; `cold`: the model must be loaded first, that included. */
  readonly duration: (job: WaitingJob, cold: boolean) => Estimate;
  /**
   * How many jobs are decided one by one; those behind them stand by base priority, then arrival, and are taken to
   * need no loads. Default: all. A plan of very many jobs costs seconds, and its end is wrong before it is reached.
   */
  readonly foreseen?: number;
}

/** A waiting job in the plan. */
export interface PlannedJob {
  readonly job: WaitingJob;
  /** 1: next when the GPU is free. */
  readonly position: number;
  /** Time from now until it starts. */
  readonly startsIn: Estimate;
  /** Time from now until it ends. */
  readonly endsIn: Estimate;
}

/**
 * The order in which the waiting jobs will run, and when, if nothing else arrives: the same decisions on a
 * copy of the books, with learned durations. A better job that arrives later moves others back.
 *
 * The p90 of a sum is taken as its p50 and the root of the summed squares of what each part may take
 * longer: parts that run late do not all do so together.
 */
export function planAhead(ledger: Ledger, outlook: PlanOutlook): PlannedJob[] {
  const books = Ledger.from(ledger.state(), withoutHold(ledger.rules));
  const planned: PlannedJob[] = [];
  let atMs = Math.max(outlook.nowMs, ledger.nowMs);
  const startMs = atMs;
  let residentModel = outlook.residentModel;
  let spread = 0;

  const inFromNow = (): Estimate => {
    const p50Ms = atMs - startMs;
    return { p50Ms, p90Ms: p50Ms + Math.round(Math.sqrt(spread)) };
  };
  const runFor = (estimate: Estimate, startedMs: number): void => {
    atMs = Math.max(atMs, startedMs + Math.round(estimate.p50Ms));
    spread += (estimate.p90Ms - estimate.p50Ms) ** 2;
    if (books.run !== null) books.end(atMs, atMs - startedMs);
  };

  if (books.run !== null) {
    const { job, startedMs } = books.run;
    const cold = job.model !== residentModel;
    residentModel = job.model;
    runFor(outlook.duration(job, cold), startedMs);
  }
  const plan = (job: WaitingJob, cold: boolean): void => {
    const startsIn = inFromNow();
    runFor(outlook.duration(job, cold), atMs);
    planned.push({ job, position: planned.length + 1, startsIn, endsIn: inFromNow() });
  };
  while (planned.length < (outlook.foreseen ?? Infinity)) {
    const decision = decide(books, residentModel, atMs);
    if (decision.kind === 'run') {
      const { job } = decision.pick;
      books.dispatch(decision.pick, atMs);
      plan(job, job.model !== residentModel);
      residentModel = job.model;
    } else if (decision.untilMs === null) {
      return planned;
    } else {
      atMs = decision.untilMs;
    }
  }
  const rest = [...books.jobs.values()];
  for (const job of rest.sort(byBase)) plan(job, false);
  return planned;
}

function byBase(one: WaitingJob, other: WaitingJob): number {
  return other.base - one.base || one.sequence - other.sequence;
}

function withoutHold(rules: Rules): Rules {
  return { ...rules, aging: { ...rules.aging, hold: { seconds: 0, share: 0 } } };
}
