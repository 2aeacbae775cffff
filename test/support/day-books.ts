import type { DispatchRecord, EndRecord } from '../../src/ports/dispatch-log.ts';

/** A run as the gateway has it on record; real milliseconds of Redis TIME. */
export interface BookedRun {
  readonly member: string;
  readonly arrivalMs: number;
  readonly startMs: number;
  readonly endMs: number;
  /** GPU time that was charged. */
  readonly chargedMs: number;
}

/** The runs on record that have ended, in order. */
export function bookedRuns(records: readonly (DispatchRecord | EndRecord)[]): BookedRun[] {
  const ends = new Map(records.flatMap((each) => (each.kind === 'end' ? [[each.id, each]] : [])));
  return records.flatMap((each) => {
    const end = each.kind === 'dispatch' ? ends.get(each.winner.id) : undefined;
    if (each.kind !== 'dispatch' || end === undefined) return [];
    const { member, arrivalMs } = each.winner;
    return [{ member, arrivalMs, startMs: each.atMs, endMs: end.atMs, chargedMs: end.usedMs }];
  });
}

/** What part of the GPU time charged for these runs was a member's. */
export function chargedShareOf(member: string, runs: readonly BookedRun[]): number {
  const chargedMs = (of: readonly BookedRun[]): number =>
    of.reduce((sum, run) => sum + run.chargedMs, 0);
  return chargedMs(runs.filter((run) => run.member === member)) / chargedMs(runs);
}

/**
 * The runs from each start of `other`'s to the next that tell whether a producer which sends one job at a time keeps
 * its turn. Left out are a turn that ended because the next job came later than the hold, which is not waited for,
 * and the one after it, in which the producer is not expected yet.
 */
export function promptTurns(
  producer: string,
  other: string,
  runs: readonly BookedRun[],
  holdMs: number,
): BookedRun[] {
  const turns: BookedRun[][] = [];
  for (const run of runs) {
    if (run.member === other) turns.push([]);
    turns.at(-1)?.push(run);
  }
  const own = runs.filter(({ member }) => member === producer);
  const isLost = (turn: readonly BookedRun[] = []): boolean => {
    const last = turn.at(-1);
    const next = last?.member === producer ? own[own.indexOf(last) + 1] : undefined;
    return last !== undefined && next !== undefined && next.arrivalMs - last.endMs > holdMs;
  };
  return turns.filter((turn, index) => !isLost(turn) && !isLost(turns[index - 1])).flat();
}
