import { unexcused } from './crash-excuses.ts';
import type { CrashFault, CrashFaultKind } from './crash-fault.ts';
import { generationsOf } from './crash-generations.ts';
import type { Generation } from './crash-generations.ts';
import type { CrashEvent } from './crash-history.ts';

const FINAL = ['completed', 'failed', 'cancelled', 'expired', 'evicted'];

type Of<K extends CrashEvent['kind']> = Extract<CrashEvent, { kind: K }>;

/**
 * Judges a history by what clients and model server saw, knowing nothing of how a gateway works:
 *
 * 1. It shows submissions that were accepted, kills, and results; no process ended but by a kill, and a submission was
 *    refused with 503 at most: try again.
 * 2. A key has one job, a job one key, and what is generated is a job somebody was given, with the request of its key.
 * 3. A job that was accepted is never absent, comes to an end, and that end stays.
 * 4. No two generations overlap, and none begins when the job's end had been told.
 * 5. A completed job's result was read, and is byte for byte one whole generation of it, the same one each time.
 * 6. Each repeat of a generation, and each job that ended otherwise than completed, has a crash of worker or Redis of
 *    its own that happened meanwhile.
 */
export function crashFaults(events: readonly CrashEvent[]): CrashFault[] {
  const seen = new Sightings(events);
  return [
    ...vacuous(seen),
    ...identities(seen),
    ...ends(seen),
    ...overlaps(seen),
    ...results(seen),
    ...unexcused(events, seen.generations),
  ];
}

/** A history by what its events are about. */
class Sightings {
  readonly generations: readonly Generation[];
  readonly accepted: readonly Of<'accepted'>[];
  readonly reads: ReadonlyMap<string, readonly Of<'read'>[]>;
  readonly results: ReadonlyMap<string, readonly Of<'result'>[]>;
  readonly keys: ReadonlyMap<string, ReadonlySet<string>>;
  private readonly events: readonly CrashEvent[];

  constructor(events: readonly CrashEvent[]) {
    this.events = events;
    this.generations = generationsOf(events);
    this.accepted = this.all('accepted');
    this.reads = grouped(this.all('read'), ({ jobId }) => jobId);
    this.results = grouped(this.all('result'), ({ jobId }) => jobId);
    const byJob = [...grouped(this.accepted, ({ jobId }) => jobId)];
    this.keys = new Map(byJob.map(([job, those]) => [job, new Set(those.map(({ key }) => key))]));
  }

  all<K extends CrashEvent['kind']>(kind: K): Of<K>[] {
    return this.events.filter((event): event is Of<K> => event.kind === kind);
  }
}

function grouped<T>(all: readonly T[], by: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(by(one), [...(groups.get(by(one)) ?? []), one]);
  return groups;
}

const fault = (kind: CrashFaultKind, text: string): CrashFault => ({ kind, text });

// 1
function vacuous(seen: Sightings): CrashFault[] {
  const needed = ['accepted', 'kill', 'result', 'generation-end'] as const;
  return [
    ...needed
      .filter((kind) => seen.all(kind).length === 0)
      .map((kind) => fault('nothing-proved', `the history shows no ${kind}`)),
    ...seen
      .all('ended-by-itself')
      .map(({ victim }) => fault('ended-by-itself', `${victim} ended although nobody killed it`)),
    ...seen
      .all('refused')
      .filter(({ status }) => status !== 503)
      .map(({ key, status }) => fault('refused-for-good', `${key} was answered with ${status}`)),
  ];
}

// 2
function identities(seen: Sightings): CrashFault[] {
  const jobsOf = grouped(seen.accepted, ({ key }) => key);
  const faults: CrashFault[] = [];
  for (const [key, answers] of jobsOf) {
    const ids = [...new Set(answers.map(({ jobId }) => jobId))];
    if (ids.length > 1) faults.push(fault('two-jobs-for-a-key', `${key}: ${ids.join(', ')}`));
  }
  for (const [jobId, keys] of seen.keys)
    if (keys.size > 1)
      faults.push(fault('two-keys-for-a-job', `${jobId}: ${[...keys].join(', ')}`));
  for (const { jobId, key } of seen.generations) {
    const keys = seen.keys.get(jobId);
    if (keys === undefined)
      faults.push(fault('not-asked-for', `${jobId} was generated, and nobody was given it`));
    else if (!keys.has(key))
      faults.push(fault('other-request', `${jobId} was generated with the request of ${key}`));
  }
  return faults;
}

// 3
function ends(seen: Sightings): CrashFault[] {
  return [...seen.keys.keys()].flatMap((jobId) => {
    const reads = seen.reads.get(jobId) ?? [];
    const states = reads.map(({ state }) => state);
    const first = reads.findIndex(({ state }) => FINAL.includes(state));
    if (states.includes('absent')) return [fault('lost', `${jobId} was accepted, then absent`)];
    if (first < 0)
      return [fault('without-end', `${jobId} was last seen ${states.at(-1) ?? 'never'}`)];
    const told = [
      ...new Set(reads.slice(first).map(({ state, code }) => `${state} ${code ?? ''}`)),
    ];
    return told.length > 1 ? [fault('two-ends', `${jobId}: ${told.join(', then ')}`)] : [];
  });
}

// 4
function overlaps(seen: Sightings): CrashFault[] {
  const faults: CrashFault[] = [];
  const inOrder = seen.generations.toSorted((a, b) => a.startMs - b.startMs);
  let latest: Generation | undefined;
  for (const next of inOrder) {
    if (latest !== undefined && next.startMs < latest.endMs)
      faults.push(fault('two-at-once', `${next.jobId} began while ${latest.jobId} was generated`));
    if (latest === undefined || next.endMs > latest.endMs) latest = next;
    const end = seen.reads.get(next.jobId)?.find(({ state }) => FINAL.includes(state));
    if (end !== undefined && end.atMs < next.startMs)
      faults.push(
        fault('after-its-end', `${next.jobId} was generated although it was ${end.state}`),
      );
  }
  return faults;
}

// 5
function results(seen: Sightings): CrashFault[] {
  const whole = grouped(seen.generations, ({ jobId }) => jobId);
  const faults: CrashFault[] = [];
  for (const [jobId, reads] of seen.reads) {
    const isCompleted = reads.some(({ state }) => state === 'completed');
    const answers = (seen.results.get(jobId) ?? []).filter(({ status }) => status === 200);
    if (!isCompleted) continue;
    if (answers.length === 0)
      faults.push(fault('no-result', `${jobId} completed without a result`));
    const produced = new Set((whole.get(jobId) ?? []).map(({ sha256 }) => sha256));
    const read = new Set(answers.map(({ sha256 }) => sha256));
    const isOther = [...read].some((sha256) => !produced.has(sha256));
    if (isOther || read.size > 1)
      faults.push(fault('other-bytes', `${jobId}: what was read is not what was generated`));
  }
  return faults;
}
