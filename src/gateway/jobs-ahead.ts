import type { Rules } from '../policy/rules.ts';
import type { QueueView, ShownJob, ShownWait } from './queue-view.ts';
import { rounded } from './rounded.ts';
import { whyAhead } from './why-ahead.ts';
import type { Contender, ReasonAhead } from './why-ahead.ts';

/** A job that goes before the one that is asked about. */
export interface JobAhead {
  /** Its id, or that it is another member's. */
  readonly job: string;
  readonly because: ReasonAhead;
  /** How long it will take (half of the time at most), in seconds. */
  readonly seconds: number;
}

/** What stands for the id of a job that the asker may not see. */
export const ANOTHERS_JOB = "another member's job";

/** Jobs that are listed; the others are counted. */
const LISTED = 100;

/**
 * Who is ahead of a waiting job in the plan, and the first term that put each there.
 *
 * @param scope whose jobs may be named; null: everybody's
 */
export function jobsAhead(
  { running, waiting, resident_model: residentModel }: QueueView,
  mine: ShownWait,
  scope: string | null,
  rules: Rules,
): { readonly ahead: readonly JobAhead[]; readonly total: number } {
  const named = ({ id, member }: ShownJob): string =>
    scope === null || scope === member ? (id ?? ANOTHERS_JOB) : ANOTHERS_JOB;
  const before = waiting.slice(0, mine.position - 1);
  const ahead = before.slice(0, LISTED).map((job): JobAhead => {
    const because = whyAhead(
      contender(job),
      contender(mine),
      job.turn_seconds > mine.turn_seconds,
      residentModel,
      rules,
    );
    const seconds = Math.max(0, job.eta_seconds.p50 - job.starts_in_seconds.p50);
    return { job: named(job), because, seconds: rounded(seconds) };
  });
  if (running === null) return { ahead, total: before.length };
  const runs: JobAhead = {
    job: named(running),
    because: 'running',
    seconds: running.eta_seconds.p50,
  };
  return { ahead: [runs, ...ahead], total: before.length + 1 };
}

/** A job of the plan as policy compares it. */
function contender({ member, band, base_priority: base, tier, model }: ShownJob): Contender {
  return { member, band, base, tier, model };
}
