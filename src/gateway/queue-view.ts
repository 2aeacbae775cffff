import type { Score } from '../policy/effective-priority.ts';
import type { WaitingJob } from '../policy/job.ts';
import type { Ledger } from '../policy/ledger.ts';
import type { Estimate, PlannedJob } from '../policy/plan.ts';
import { standingOf } from '../policy/standing.ts';
import { rounded } from './rounded.ts';

/** A range of seconds: half of the time at most p50, nine times in ten at most p90. */
export interface EtaSeconds {
  readonly p50: number;
  readonly p90: number;
}

/** Jobs that a view lists, from the head of the plan: beyond that it takes longer to read than it is true. */
export const LISTED = 10_000;

/** What is shown of any job in the queue. Another member's job shows no id, member or model. */
export interface ShownJob {
  readonly id: string | null;
  readonly member: string | null;
  readonly model: string | null;
  readonly tier: string;
  readonly band: string;
  readonly base_priority: number;
}

/** The job that has the GPU. */
export interface ShownRun extends ShownJob {
  readonly state: 'running';
  /** Unix seconds. */
  readonly started_at: number;
  readonly running_seconds: number;
  /** Until it ends. */
  readonly eta_seconds: EtaSeconds;
}

/** A waiting job, at its place in the plan. */
export interface ShownWait extends ShownJob {
  readonly state: 'waiting';
  /** 1: next. May rise when better jobs arrive. */
  readonly position: number;
  readonly score: Score;
  /** GPU-seconds until its member's turn in the band; 0: it has come. */
  readonly turn_seconds: number;
  readonly waited_seconds: number;
  /** Whether it waits out the backoff of a failed attempt. */
  readonly in_backoff: boolean;
  /** Until it starts. */
  readonly starts_in_seconds: EtaSeconds;
  /** Until its answer is complete. */
  readonly eta_seconds: EtaSeconds;
}

/** `GET /berth/queue`. */
export interface QueueView {
  /** When the plan was made, unix seconds. */
  readonly as_of: number;
  /** Place in the journal of the queue that it was made at. */
  readonly version: string;
  readonly resident_model: string | null;
  readonly running: ShownRun | null;
  /** How many jobs wait in all. */
  readonly waiting_total: number;
  /** The head of the plan: at most 10,000 jobs. */
  readonly waiting: readonly ShownWait[];
}

/** What a view is made of. */
export interface QueueViewFacts {
  readonly version: string;
  readonly nowMs: number;
  readonly residentModel: string | null;
  readonly duration: (job: WaitingJob, cold: boolean) => Estimate;
}

/** The running job, then the plan: who goes when, and by which terms it stands where. */
export function queueView(
  ledger: Ledger,
  planned: readonly PlannedJob[],
  facts: QueueViewFacts,
): QueueView {
  const { version, nowMs, residentModel } = facts;
  return {
    as_of: nowMs / 1000,
    version,
    resident_model: residentModel,
    running: runOf(ledger, facts),
    waiting_total: planned.length,
    waiting: planned.slice(0, LISTED).map(({ job, position, startsIn, endsIn }) => {
      const standing = standingOf(ledger, job, residentModel, nowMs);
      const { aging, effective } = standing.score;
      return {
        ...shown(job),
        state: 'waiting',
        position,
        score: { ...standing.score, aging: rounded(aging), effective: rounded(effective) },
        turn_seconds: rounded(standing.turnMs / 1000),
        waited_seconds: rounded(standing.waitedMs / 1000),
        in_backoff: ledger.isInBackoff(job.id),
        starts_in_seconds: seconds(startsIn),
        eta_seconds: seconds(endsIn),
      };
    }),
  };
}

/** The view as a member may see it: of others' jobs, that they are there and why they stand where they do. */
export function viewFor(view: QueueView, member: string): QueueView {
  const mask = <T extends ShownJob>(job: T): T =>
    job.member === member ? job : { ...job, id: null, member: null, model: null };
  return {
    ...view,
    running: view.running && mask(view.running),
    waiting: view.waiting.map(mask),
  };
}

function runOf(
  ledger: Ledger,
  { nowMs, residentModel, duration }: QueueViewFacts,
): ShownRun | null {
  if (ledger.run === null) return null;
  const { job, startedMs } = ledger.run;
  const ranMs = Math.max(0, nowMs - startedMs);
  const { p50Ms, p90Ms } = duration(job, job.model !== residentModel);
  const left = { p50Ms: Math.max(0, p50Ms - ranMs), p90Ms: Math.max(0, p90Ms - ranMs) };
  return {
    ...shown(job),
    state: 'running',
    started_at: startedMs / 1000,
    running_seconds: rounded(ranMs / 1000),
    eta_seconds: seconds(left),
  };
}

function shown(job: WaitingJob): ShownJob {
  const { id, member, model, tier, band, base } = job;
  return { id, member, model, tier, band, base_priority: base };
}

const seconds = ({ p50Ms, p90Ms }: Estimate): EtaSeconds => ({
  p50: rounded(p50Ms / 1000),
  p90: rounded(p90Ms / 1000),
});
