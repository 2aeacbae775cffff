import type { Redis } from 'ioredis';
import type { JobId, WaitingJob } from '../../policy/job.ts';
import { Ledger } from '../../policy/ledger.ts';
import { applyEvent } from '../../policy/ledger-event.ts';
import type { LedgerEvent } from '../../policy/ledger-event.ts';
import type { Rules } from '../../policy/rules.ts';
import { JOURNAL_START, readFacts, readJournalEntry } from './journal-entry.ts';
import type { JournalEntry, JournalPlace } from './journal-entry.ts';
import type { PoolKeys } from './keys.ts';
import { readSnapshot } from './ledger-snapshot.ts';
import type { LedgerSnapshot } from './ledger-snapshot.ts';

const PAGE = 1000;

/** A ledger as it stands at one place of the journal. */
export interface LoadedLedger {
  readonly ledger: Ledger;
  readonly place: JournalPlace;
  /** Whether the books were lost and had to start over from the waiting jobs. */
  readonly isRebuilt: boolean;
}

/**
 * Reads the ledger from Redis.
 *
 * 1. The last snapshot of the books, or the empty books before the first entry.
 * 2. After it the waiting jobs, in pages, while others go on changing the queue; and every entry since the snapshot.
 * 3. What waited at the snapshot's place: jobs without an entry since, and jobs whose first entry since took them
 *    away.
 * 4. The entries, one by one.
 *
 * When the snapshot is lost or damaged, or entries are missing, the books start over from the waiting jobs.
 */
export async function loadLedger(
  redis: Redis,
  keys: PoolKeys,
  rules: Rules,
): Promise<LoadedLedger> {
  // 1
  const [snapshotJson, before] = await Promise.all([
    orNothing(redis.get(`${keys.pool}:ledger`), null),
    readHead(redis, keys),
  ]);
  const snapshot = snapshotJson === null ? emptySnapshot(rules) : readSnapshot(snapshotJson, rules);
  // 2
  const waiting = await readWaiting(redis, keys, rules);
  const head = await readHead(redis, keys);
  const follows =
    snapshot !== undefined && (snapshot.epoch === head.epoch || snapshot.version === 0);
  const since = follows
    ? await readSince(redis, keys, { version: snapshot.version, epoch: head.epoch }, rules)
    : undefined;
  const untouched = head.version === 0 && snapshotJson === null && waiting.size === 0;
  if (snapshot === undefined || since === undefined || (head.version === 0 && !untouched)) {
    return { ...rebuild(waiting, rules), place: before };
  }
  // 3
  const waitingThen = waitingAt(snapshot, waiting, since);
  // Nothing can have waited before the first entry: the count started over since.
  if (snapshotJson === null && waitingThen.size > 0) {
    return { ...rebuild(waiting, rules), place: before };
  }
  const ledger = Ledger.from({ ...snapshot.books, jobs: [...waitingThen.values()] }, rules);
  // 4
  for (const { event } of since) applyEvent(ledger, event);
  const last = since.at(-1);
  const place =
    last === undefined
      ? { version: snapshot.version, epoch: head.epoch }
      : { version: last.version, epoch: last.epoch };
  return { ledger, place, isRebuilt: false };
}

/** What Redis replies; `nothing` when the key holds a value of another type: then its content is lost. */
async function orNothing<T>(reply: Promise<T>, nothing: T): Promise<T> {
  return reply.catch((error: unknown) => {
    if (error instanceof Error && error.message.startsWith('WRONGTYPE')) return nothing;
    throw error;
  });
}

/** The place that the head names; the start when it is missing or damaged. */
async function readHead(redis: Redis, keys: PoolKeys): Promise<JournalPlace> {
  const [version, epoch] = await orNothing(redis.hmget(keys.journalHead, 'v', 'e'), []);
  const isReadable = /^\d+$/.test(version ?? '') && /^\d+$/.test(epoch ?? '');
  return isReadable ? { version: Number(version), epoch: epoch ?? '' } : JOURNAL_START;
}

function emptySnapshot(rules: Rules): LedgerSnapshot {
  return { ...JOURNAL_START, books: new Ledger(rules).state() };
}

function rebuild(
  waiting: ReadonlyMap<JobId, WaitingJob>,
  rules: Rules,
): { ledger: Ledger; isRebuilt: boolean } {
  return { ledger: Ledger.rebuild(waiting.values(), rules), isRebuilt: true };
}

/** The entries after a place; undefined when some are missing or not readable. */
async function readSince(
  redis: Redis,
  keys: PoolKeys,
  from: JournalPlace,
  rules: Rules,
): Promise<JournalEntry[] | undefined> {
  const entries: JournalEntry[] = [];
  for (;;) {
    const after = from.version + entries.length;
    const page = await orNothing(
      redis.xrange(keys.journal, `${after + 1}-0`, '+', 'COUNT', PAGE),
      [],
    );
    for (const raw of page) {
      const entry = readJournalEntry(raw, rules);
      if (entry?.epoch !== from.epoch) return undefined;
      if (entry.version !== from.version + entries.length + 1) return undefined;
      entries.push(entry);
    }
    if (page.length < PAGE) break;
  }
  return (await isWhole(redis, keys, from, entries.length)) ? entries : undefined;
}

/** Whether the stream goes on from what was read to where its head is: otherwise entries were lost. */
async function isWhole(
  redis: Redis,
  keys: PoolKeys,
  from: JournalPlace,
  count: number,
): Promise<boolean> {
  const results = await redis
    .multi()
    .hmget(keys.journalHead, 'v', 'e')
    .xrange(keys.journal, `${from.version + count + 1}-0`, '+')
    .exec();
  const [version, epoch] = (results?.[0]?.[1] ?? []) as (string | null)[];
  const rest = (results?.[1]?.[1] ?? []) as unknown[];
  return (
    Number(version ?? 0) === from.version + count + rest.length && (epoch ?? '0') === from.epoch
  );
}

function waitingAt(
  snapshot: LedgerSnapshot,
  waiting: ReadonlyMap<JobId, WaitingJob>,
  since: readonly JournalEntry[],
): Map<JobId, WaitingJob> {
  const then = new Map(waiting);
  const seen = new Set<JobId>();
  for (const { event } of since) {
    const { job, kind } = event;
    if (seen.has(job.id)) continue;
    seen.add(job.id);
    const wasWaiting =
      kind === 'dispatch' ||
      kind === 'remove' ||
      (kind === 'arrive' && isKnownBefore(snapshot, event));
    if (wasWaiting) then.set(job.id, job);
    else then.delete(job.id);
  }
  if (snapshot.books.run !== null) then.delete(snapshot.books.run.job.id);
  return then;
}

/** An `arrive` later than the job's arrival woke it from its backoff: it waited then, where its lane was open. */
function isKnownBefore(snapshot: LedgerSnapshot, { job, atMs }: LedgerEvent): boolean {
  const lane = snapshot.books.bands[job.band]?.lanes[job.member];
  return lane !== undefined && job.arrivalMs < atMs;
}

async function readWaiting(
  redis: Redis,
  keys: PoolKeys,
  rules: Rules,
): Promise<Map<JobId, WaitingJob>> {
  const jobs = new Map<JobId, WaitingJob>();
  for (const set of ['prioritized', 'delayed'] as const) {
    for (let cursor = '0'; ;) {
      const [next, page] = await redis.zscan(`${keys.queue}${set}`, cursor, 'COUNT', PAGE);
      const pipeline = redis.pipeline();
      for (let index = 0; index < page.length; index += 2) {
        pipeline.hget(`${keys.queue}${page[index] ?? ''}`, 'led');
      }
      const replies = (await pipeline.exec()) ?? [];
      for (const [index, [, json]] of replies.entries()) {
        const job = readFacts(page[2 * index] ?? '', typeof json === 'string' ? json : '', rules);
        if (job === undefined) continue;
        const dueMs = Math.floor(Number(page[2 * index + 1]) / 4096);
        jobs.set(job.id, set === 'delayed' ? { ...job, eligibleAtMs: dueMs } : job);
      }
      if (next === '0') break;
      cursor = next;
    }
  }
  return jobs;
}
