import type { DispatchRecord, EndRecord, RecordedJob } from '../ports/dispatch-log.ts';
import type { TraceLine } from './trace.ts';

/** What was made of dispatch records. */
export interface RecordedTrace {
  /** A line for each job that has ended, in the order of arrival. */
  readonly lines: readonly TraceLine[];
  /** Jobs that were dispatched and have no end on record: they run or wait again, or the record is gone. */
  readonly unended: number;
  /** Ended runs that had to load their model, and for which the model server told of no load: it is in their seconds. */
  readonly unmeasuredLoads: number;
  /** The middle one of the loads that were measured, in milliseconds; undefined without any. */
  readonly loadMs: number | undefined;
}

interface Job {
  readonly facts: RecordedJob;
  usedMs: number;
  hasEnded: boolean;
  isSwapOpen: boolean;
}

/**
 * Makes a trace of dispatch records, oldest first: each dispatch is paired with its end, and what the attempts of one
 * job used is added up, less the loads. An end whose dispatch is no longer on record is skipped.
 */
export function recordedTrace(records: Iterable<DispatchRecord | EndRecord>): RecordedTrace {
  const jobs = new Map<string, Job>();
  const loads: number[] = [];
  let unmeasuredLoads = 0;
  for (const record of records) {
    if (record.kind === 'dispatch') {
      const { winner: facts, isSwap } = record;
      const known = jobs.get(facts.id);
      jobs.set(facts.id, {
        facts,
        usedMs: known?.usedMs ?? 0,
        hasEnded: false,
        isSwapOpen: isSwap,
      });
      continue;
    }
    const job = jobs.get(record.id);
    if (job === undefined || job.hasEnded) continue;
    job.usedMs += record.usedMs - record.loadMs;
    job.hasEnded = record.kind === 'end';
    if (record.loadMs > 0) loads.push(record.loadMs);
    else if (job.isSwapOpen) unmeasuredLoads += 1;
    job.isSwapOpen = false;
  }
  const ended = [...jobs.values()].filter(({ hasEnded }) => hasEnded);
  ended.sort((a, b) => a.facts.arrivalMs - b.facts.arrivalMs);
  loads.sort((a, b) => a - b);
  return {
    lines: ended.map(lineOf),
    unended: jobs.size - ended.length,
    unmeasuredLoads,
    loadMs: loads[loads.length >> 1],
  };
}

function lineOf({ facts, usedMs }: Job): TraceLine {
  const { arrivalMs, member, tier, base, model } = facts;
  return { at: arrivalMs / 1000, seconds: usedMs / 1000, member, tier, priority: base, model };
}
