import type { Score } from '../policy/effective-priority.ts';
import type { JobState } from '../policy/outcome.ts';
import { pointMs } from '../policy/rules.ts';
import type { Rules } from '../policy/rules.ts';
import type { DispatchHistory, DispatchRecord } from '../ports/dispatch-log.ts';
import type { JobRecord } from '../ports/job-records.ts';
import { explanationText } from './explanation-text.ts';
import { jobsAhead } from './jobs-ahead.ts';
import type { JobAhead } from './jobs-ahead.ts';
import type { EtaSeconds, QueueView, ShownWait } from './queue-view.ts';
import { rounded } from './rounded.ts';
import { WaitTimeline } from './wait-timeline.ts';
import type { Absence, ReasonToWait, WaitPiece } from './wait-timeline.ts';

/** Why a job waits, or waited: `GET /berth/jobs/{id}/explain`. Times are unix seconds. */
export interface Explanation {
  readonly id: string;
  readonly object: 'explanation';
  readonly state: JobState;
  readonly as_of: number;
  /** The rest in a few sentences. */
  readonly summary: string;
  /** The four terms: now while it waits, else at its last dispatch. Null: not known. */
  readonly score: Score | null;
  readonly clock: AgingClock | null;
  /** 1: next; null: it does not wait, or no plan names it yet. May rise when better jobs arrive. */
  readonly position: number | null;
  /** Until its answer is complete. */
  readonly eta: EtaSeconds | null;
  /** Who goes before it, soonest first; at most 100 that wait, and the one that runs. */
  readonly ahead: readonly JobAhead[];
  readonly ahead_total: number;
  /** From its submission to its last dispatch, to its end without one, or to now. */
  readonly wait_seconds: number;
  /** That wait in pieces that lie end to end. */
  readonly timeline: readonly TimelinePiece[];
  /** What the pieces of each reason come to, in seconds. */
  readonly totals: Readonly<Partial<Record<ReasonToWait, number>>>;
}

/** What its waiting has earned it. */
export interface AgingClock {
  /** Waiting that counts against other bands. */
  readonly band_seconds: number;
  /** GPU-seconds until its member's turn in the band; 0: it has come. */
  readonly turn_seconds: number;
  /** Since it arrived, or arrived anew. */
  readonly waited_seconds: number;
  /** From when it counts: its arrival, or a later time because its band has been served. */
  readonly because: 'arrival' | 'band_served';
}

/** A piece of a wait. */
export interface TimelinePiece {
  readonly from: number;
  readonly to: number;
  readonly seconds: number;
  readonly because: ReasonToWait;
  /** Runs, or loads, of jobs ahead that it is made of. */
  readonly runs: number;
}

/** What explaining needs. */
export interface ExplainingDependencies {
  readonly rules: Rules;
  /** The published plan; undefined while there is none. */
  readonly plan: () => Promise<QueueView | undefined>;
  readonly history: DispatchHistory;
  /** Redis TIME, in ms. */
  readonly nowMs: () => Promise<number>;
}

/** Shown terms are rounded to a thousandth of a point, which is so many seconds of waiting at most. */
const ROUNDED_POINTS = 0.001;

/**
 * Why a job waits, or waited.
 *
 * @param scope whose jobs may be named; null: everybody's
 * @throws {GatewayError} `redis_unavailable`
 */
export async function explain(
  record: JobRecord,
  scope: string | null,
  dependencies: ExplainingDependencies,
): Promise<Explanation> {
  const { rules } = dependencies;
  const nowMs = Math.max(await dependencies.nowMs(), record.createdMs);
  const plan = record.state === 'waiting' ? await dependencies.plan() : undefined;
  const mine = plan?.waiting.find(({ id }) => id === record.id);
  const { pieces, dispatch } = await waitOf(record, nowMs, dependencies);
  const { ahead, total } =
    plan === undefined || mine === undefined
      ? { ahead: [], total: 0 }
      : jobsAhead(plan, mine, scope, rules);
  const told = {
    state: record.state,
    position: mine?.position ?? null,
    eta: mine?.eta_seconds ?? null,
    ahead,
    ahead_total: total,
    wait_seconds: sum(pieces),
    totals: totalsOf(pieces),
  };
  return {
    id: record.id,
    object: 'explanation',
    as_of: nowMs / 1000,
    summary: explanationText(told),
    score: mine?.score ?? roundedScore(dispatch),
    clock: mine === undefined ? clockAt(dispatch, rules) : clockNow(mine, rules),
    ...told,
    timeline: pieces.map(({ fromMs, toMs, because, runs }) => ({
      from: fromMs / 1000,
      to: toMs / 1000,
      seconds: (toMs - fromMs) / 1000,
      because,
      runs,
    })),
  };
}

async function waitOf(
  record: JobRecord,
  nowMs: number,
  { rules, history }: ExplainingDependencies,
): Promise<{ pieces: readonly WaitPiece[]; dispatch: DispatchRecord | undefined }> {
  const { id, facts, state, createdMs: fromMs, startedMs, endedMs } = record;
  const toMs = state === 'waiting' ? nowMs : (startedMs ?? endedMs ?? nowMs);
  const timeline = new WaitTimeline({
    ...{ id, job: facts, fromMs, toMs, rules },
    absences: absencesOf(record, nowMs),
    recordedFromMs: await history.since(),
  });
  for await (const page of history.between(fromMs, toMs))
    for (const each of page) timeline.add(each);
  return { pieces: timeline.whole(), dispatch: timeline.dispatch };
}

/** When it was not in the queue; an absence that goes on lasts until now. */
function absencesOf({ absences }: JobRecord, nowMs: number): Absence[] {
  return absences.map(({ why, fromMs, toMs }) => ({ why, fromMs, toMs: toMs ?? nowMs }));
}

function clockNow(mine: ShownWait, rules: Rules): AgingClock {
  const { score, turn_seconds: turn, waited_seconds: waited } = mine;
  return clock(score.aging, turn, waited, rules);
}

function clockAt(dispatch: DispatchRecord | undefined, rules: Rules): AgingClock | null {
  if (dispatch === undefined) return null;
  const { atMs, turnMs, winner } = dispatch;
  return clock(winner.score.aging, turnMs / 1000, (atMs - winner.arrivalMs) / 1000, rules);
}

function clock(aging: number, turn: number, waited: number, rules: Rules): AgingClock {
  const pointSeconds = pointMs(rules) / 1000;
  const counted = aging * pointSeconds;
  return {
    band_seconds: rounded(counted),
    turn_seconds: rounded(turn),
    waited_seconds: rounded(waited),
    because: waited - counted > ROUNDED_POINTS * pointSeconds ? 'band_served' : 'arrival',
  };
}

function roundedScore(dispatch: DispatchRecord | undefined): Score | null {
  if (dispatch === undefined) return null;
  const { score } = dispatch.winner;
  return { ...score, aging: rounded(score.aging), effective: rounded(score.effective) };
}

function sum(pieces: readonly WaitPiece[]): number {
  return pieces.reduce((ms, { fromMs, toMs }) => ms + toMs - fromMs, 0) / 1000;
}

function totalsOf(pieces: readonly WaitPiece[]): Partial<Record<ReasonToWait, number>> {
  const totals = new Map<ReasonToWait, number>();
  for (const { because, fromMs, toMs } of pieces)
    totals.set(because, (totals.get(because) ?? 0) + toMs - fromMs);
  return Object.fromEntries([...totals].map(([because, ms]) => [because, ms / 1000]));
}
