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
 * its turn: those in which each next job came within the hold, and in the turn before too. One that came later is not
 * waited for, nor is the next one.
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
  const isLate = (run: BookedRun): boolean => {
    const next = own[own.indexOf(run) + 1];
    return run.member === producer && next !== undefined && next.arrivalMs - run.endMs > holdMs;
  };
  const isPrompt = (turn: readonly BookedRun[] = []): boolean => !turn.some(isLate);
  return turns.filter((turn, index) => isPrompt(turn) && isPrompt(turns[index - 1])).flat();
}
