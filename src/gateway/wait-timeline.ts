import type { Rules } from '../policy/rules.ts';
import type { DispatchRecord, EndRecord } from '../ports/dispatch-log.ts';
import { reasonsAhead, whyAhead } from './why-ahead.ts';
import type { Contender } from './why-ahead.ts';

/**
 * What a piece of a wait was spent behind: a job that went ahead, and why (`ReasonAhead`), or
 *
 * - `swap`: the load of a model for a job that went ahead.
 * - `paused`: its film was paused.
 * - `ended`: it had ended, before somebody had it tried again.
 * - `recovery`: an attempt of its own that had to be repeated, or nothing ran at all.
 * - `dispatch`: the GPU was being handed to it.
 * - `unrecorded`: what ran then is not on record any more.
 */
export const reasonsToWait = [
  ...reasonsAhead,
  'swap',
  'paused',
  'ended',
  'recovery',
  'dispatch',
  'unrecorded',
] as const;

/** One of them. */
export type ReasonToWait = (typeof reasonsToWait)[number];

/** A stretch of a wait; times are unix milliseconds. */
export interface WaitPiece {
  readonly fromMs: number;
  readonly toMs: number;
  readonly because: ReasonToWait;
  /** Runs of jobs ahead that it is made of. */
  readonly runs: number;
}

/** A stretch in which the job was not in the queue at all. */
export interface Absence {
  readonly why: 'paused' | 'ended';
  readonly fromMs: number;
  readonly toMs: number;
}

/** The wait that is explained. */
export interface Wait {
  readonly id: string;
  readonly job: Contender;
  /** From its submission to its last dispatch, to its end, or to now. */
  readonly fromMs: number;
  readonly toMs: number;
  /** In their order. */
  readonly absences: readonly Absence[];
  /** What ran before is not on record any more. */
  readonly recordedFromMs: number;
  readonly rules: Rules;
}

interface Run {
  readonly record: DispatchRecord;
  readonly because: ReasonToWait;
}

/** Beyond the hold, what may pass between two runs before it counts as a time in which nothing ran, in ms. */
const HAND_OVER_MS = 1000;

/**
 * Cuts a wait into pieces by what was done on the GPU meanwhile. The pieces lie end to end, from the first moment
 * to the last. A moment between two runs counts to the later one: it was being started.
 */
export class WaitTimeline {
  private readonly wait: Wait;
  private readonly handOverMs: number;
  private readonly pieces: WaitPiece[] = [];
  /** All before it is explained. */
  private atMs: number;
  private toldMs = 0;
  private run: Run | undefined;
  private lastOwn: DispatchRecord | undefined;

  constructor(wait: Wait) {
    this.wait = wait;
    this.atMs = wait.fromMs;
    this.handOverMs = wait.rules.aging.hold.seconds * 1000 + HAND_OVER_MS;
  }

  /** A record of the time; they come oldest first, from the run on that was going on when the wait began. */
  add(record: DispatchRecord | EndRecord): void {
    // A worker that is being replaced may tell late what its successor has told too.
    if (record.atMs < this.toldMs) return;
    this.toldMs = record.atMs;
    if (record.kind === 'dispatch') this.dispatched(record);
    else if (record.id === this.run?.record.winner.id) this.ended(record);
  }

  /** All of the wait, once every record was added. */
  whole(): readonly WaitPiece[] {
    const { toMs } = this.wait;
    if (this.run === undefined) this.idle(toMs, 'dispatch');
    else this.spend(toMs, this.run.because, 1);
    return this.pieces;
  }

  /** The last record of the job's own dispatch: the terms it went with. */
  get dispatch(): DispatchRecord | undefined {
    return this.lastOwn;
  }

  private dispatched(record: DispatchRecord): void {
    const { atMs, winner } = record;
    // The end of a run can be missing: a record may get lost.
    if (this.run !== undefined) this.spend(atMs, this.run.because, 1);
    const because = this.reason(record);
    const isOwn = winner.id === this.wait.id;
    if (isOwn) this.lastOwn = record;
    this.idle(atMs, isOwn ? 'dispatch' : because);
    this.run = { record, because };
  }

  private ended({ atMs, loadMs }: EndRecord): void {
    if (this.run === undefined) return;
    const { record, because } = this.run;
    this.run = undefined;
    const isOwn = because === 'recovery';
    this.spend(Math.min(atMs, record.atMs + loadMs), isOwn ? because : 'swap', 1);
    this.spend(atMs, because, 1);
  }

  private reason({ atMs, winner, turnMs, residentModel }: DispatchRecord): ReasonToWait {
    const { id, job, fromMs, rules } = this.wait;
    if (winner.id === id) return 'recovery';
    if (atMs <= fromMs) return 'running';
    return whyAhead(winner, job, turnMs > 0, residentModel, rules);
  }

  /** A time without a run: a short one counts to what follows. */
  private idle(untilMs: number, next: ReasonToWait): void {
    this.spend(Math.min(untilMs, this.wait.recordedFromMs), 'unrecorded');
    const absent = this.wait.absences.filter(({ fromMs }) => fromMs < untilMs);
    const sinceMs = Math.max(this.atMs, ...absent.map(({ toMs }) => toMs));
    const isShort = untilMs - sinceMs <= this.handOverMs;
    this.spend(untilMs, isShort ? next : 'recovery');
  }

  private spend(untilMs: number, because: ReasonToWait, runs = 0): void {
    const toMs = Math.min(untilMs, this.wait.toMs);
    for (const { why, ...absence } of this.wait.absences) {
      if (absence.toMs <= this.atMs || absence.fromMs >= toMs) continue;
      this.append(absence.fromMs, because, runs);
      this.append(Math.min(absence.toMs, toMs), why, 0);
    }
    this.append(toMs, because, runs);
  }

  private append(toMs: number, because: ReasonToWait, runs: number): void {
    const fromMs = this.atMs;
    if (toMs <= fromMs) return;
    this.atMs = toMs;
    const last = this.pieces.at(-1);
    if (last?.because !== because) this.pieces.push({ fromMs, toMs, because, runs });
    else this.pieces[this.pieces.length - 1] = { ...last, toMs, runs: last.runs + runs };
  }
}
