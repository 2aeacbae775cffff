import type { JobState } from '../policy/outcome.ts';
import type { JobRecord } from '../ports/job-records.ts';
import { jobObject } from './job-object.ts';
import type { JobObject, PlannedPlace } from './job-object.ts';
import type { EtaSeconds } from './queue-view.ts';
import { hasEnded } from './watch-job.ts';

/** Something a client is told of its job. `id` grows, so that a client can name what it has seen. */
export type StoryEvent = { readonly id: string } & (
  | { readonly name: 'state'; readonly data: StateChange }
  | { readonly name: 'position'; readonly data: Place }
  | { readonly name: 'progress'; readonly data: Progress }
);

/** A job came to a state; `job` is given for the one it is in. */
interface StateChange {
  readonly id: string;
  readonly state: JobState;
  /** Unix seconds; null where it is not known. */
  readonly at: number | null;
  readonly job?: JobObject;
}

interface Place {
  readonly position: number;
  readonly eta_seconds: EtaSeconds;
}

interface Progress {
  /** Body bytes of the answer so far. */
  readonly bytes: number;
  readonly eta_seconds: EtaSeconds | null;
}

/**
 * Tells a job's states in their order, and between them where it stands and how far its answer has come. Nothing of it
 * is stored: an event's id `step-count` follows from the record. Steps: 0 waiting, 2n - 1 the nth run, 2n waiting after
 * it, and the end one more than the last; count: in a wait 1, 2, … for each place that was told, in a run the bytes of the
 * answer.
 */
export class JobStory {
  private step: number;
  private count: number;
  private told = '';

  private constructor(step: number, count: number) {
    this.step = step;
    this.count = count;
  }

  /** A story for somebody who has seen the event of this id, and those before; '': nothing. Undefined: it is no id. */
  static after(eventId: string): JobStory | undefined {
    if (eventId === '') return new JobStory(-1, 0);
    const [, step, count] = /^(\d{1,9})-(\d{1,15})$/.exec(eventId) ?? [];
    return step === undefined ? undefined : new JobStory(Number(step), Number(count));
  }

  /** Whether all was told that there ever will be. */
  isOver(record: JobRecord): boolean {
    return hasEnded(record) && this.step >= stepOf(record);
  }

  /** What is new since the last call. */
  tell(record: JobRecord, place: PlannedPlace | undefined): StoryEvent[] {
    const events: StoryEvent[] = [];
    const job = jobObject(record, place);
    for (const { step, state, atMs } of stepsOf(record)) {
      if (step <= this.step) continue;
      this.step = step;
      this.count = 0;
      this.told = '';
      const at = atMs === null ? null : atMs / 1000;
      const isNow = step === stepOf(record);
      const data = { id: record.id, state, at, ...(isNow ? { job } : {}) };
      events.push({ id: `${step}-0`, name: 'state', data });
    }
    if (record.state === 'waiting') events.push(...this.place(job));
    if (record.state === 'running') events.push(...this.progress(record, job));
    return events;
  }

  private place({ position, eta_seconds }: JobObject): StoryEvent[] {
    if (position === null || eta_seconds === null || this.told === String(position)) return [];
    this.told = String(position);
    this.count += 1;
    const data = { position, eta_seconds };
    return [{ id: `${this.step}-${this.count}`, name: 'position', data }];
  }

  private progress({ answer, runs }: JobRecord, { eta_seconds }: JobObject): StoryEvent[] {
    const bytes = answer?.run === runs ? answer.bytes : 0;
    if (bytes <= this.count) return [];
    this.count = bytes;
    return [{ id: `${this.step}-${bytes}`, name: 'progress', data: { bytes, eta_seconds } }];
  }
}

interface Step {
  readonly step: number;
  readonly state: JobState;
  readonly atMs: number | null;
}

function stepOf(record: JobRecord): number {
  const { state, runs } = record;
  if (state === 'waiting') return 2 * runs;
  return state === 'running' ? 2 * runs - 1 : 2 * runs + 1;
}

/** The states that a record still knows of, in their order. */
function stepsOf(record: JobRecord): Step[] {
  const { state, runs, createdMs, startedMs, endedMs } = record;
  const steps: Step[] = [{ step: 0, state: 'waiting', atMs: createdMs }];
  if (runs > 0) steps.push({ step: 2 * runs - 1, state: 'running', atMs: startedMs });
  if (state === 'waiting' && runs > 0) steps.push({ step: 2 * runs, state, atMs: null });
  if (hasEnded(record)) steps.push({ step: 2 * runs + 1, state, atMs: endedMs });
  return steps;
}
