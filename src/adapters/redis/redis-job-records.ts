import type { Redis } from 'ioredis';
import { states } from '../../policy/outcome.ts';
import type { JobState } from '../../policy/outcome.ts';
import type { JobFacts } from '../../ports/job-queue.ts';
import type {
  CancelFate,
  JobListPage,
  JobListQuery,
  JobRecord,
  JobRecords,
} from '../../ports/job-records.ts';
import type { ResponseEnd } from '../../ports/response-log.ts';
import { unavailable } from './bull-job-queue.ts';
import type { PoolKeys } from './keys.ts';
import { Scripts } from './scripts.ts';

/** Jobs looked at in one step of a list, and in one list. */
const PAGE = 200;
const MOST_LOOKED_AT = 5000;

/** What read-jobs.lua replies of one job. */
type RawRecord = [
  running: number,
  log: string,
  retained: string,
  fields: (string | null)[],
  endMarker: string,
];

/** Reads jobs from BullMQ's own records and the lists that submission and removal keep. */
export class RedisJobRecords implements JobRecords {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;
  private readonly scripts: Scripts;

  /** @param redis a `prompt` connection */
  constructor(redis: Redis, keys: PoolKeys) {
    this.redis = redis;
    this.keys = keys;
    this.scripts = new Scripts(redis);
  }

  async read(jobId: string): Promise<JobRecord | undefined> {
    const [record] = await this.known([jobId]);
    return record;
  }

  async list(query: JobListQuery): Promise<JobListPage> {
    const list = `${this.keys.pool}:jobs${query.member === null ? '' : `:${query.member}`}`;
    const jobs: JobRecord[] = [];
    let before = query.before;
    for (let looked = 0; looked < MOST_LOOKED_AT; looked += PAGE) {
      const page = await this.page(list, before);
      const found = await this.known(page.map(({ id }) => id));
      for (const record of found) {
        if (record === undefined || !fits(record, query)) continue;
        jobs.push(record);
        if (jobs.length === query.limit) return { jobs, next: record.arrival };
      }
      if (page.length < PAGE) return { jobs, next: null };
      before = page.at(-1)?.arrival ?? null;
    }
    return { jobs, next: before };
  }

  async cancel(jobId: string): Promise<CancelFate> {
    const { pool, queue } = this.keys;
    try {
      const own = JSON.stringify({ pool, queue, id: jobId });
      return (await this.scripts.run('cancel', pool, own)) as CancelFate;
    } catch (error) {
      throw unavailable(error);
    }
  }

  private async page(
    list: string,
    before: number | null,
  ): Promise<{ id: string; arrival: number }[]> {
    const from = before === null ? '+inf' : `(${before}`;
    const flat = await this.redis
      .zrange(list, from, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, PAGE, 'WITHSCORES')
      .catch((error: unknown) => {
        throw unavailable(error);
      });
    return flat.flatMap((id, index) =>
      index % 2 === 0 ? [{ id, arrival: Number(flat[index + 1]) }] : [],
    );
  }

  private async known(ids: readonly string[]): Promise<(JobRecord | undefined)[]> {
    if (ids.length === 0) return [];
    const { pool, queue } = this.keys;
    try {
      const own = JSON.stringify({ pool, queue });
      const raw = (await this.scripts.run('read-jobs', pool, own, ...ids)) as (RawRecord | null)[];
      return ids.map((id, index) => recordOf(id, raw[index] ?? null));
    } catch (error) {
      throw unavailable(error);
    }
  }
}

function fits(record: JobRecord, { states: wanted, model, band }: JobListQuery): boolean {
  return (
    (wanted === null || wanted.includes(record.state)) &&
    (model === null || record.facts.model === model) &&
    (band === null || record.facts.band === band)
  );
}

/** From what rejoin.lua notes: `p<from>-<to> ` for each time it was parked, `e…` for each it had ended. */
function absencesOf(away: string, parkedMs: number | null): JobRecord['absences'] {
  const over = [...away.matchAll(/([pe])(\d+)-(\d+) /g)].map(([, why, fromMs, toMs]) => ({
    why: why === 'p' ? ('paused' as const) : ('ended' as const),
    ...{ fromMs: Number(fromMs), toMs: Number(toMs) },
  }));
  return parkedMs === null ? over : [...over, { why: 'paused', fromMs: parkedMs, toMs: null }];
}

/** Undefined also for a job that other hands added: nobody asked for it. */
function recordOf(id: string, raw: RawRecord | null): JobRecord | undefined {
  if (raw === null) return undefined;
  const [running, log, retained, fields, endMarker] = raw;
  const [data, created, arrival, started, ended, outcome, ...rest] = fields;
  const [code, message, reason, gpuMs, swapMs, made, begun, lease, away, parked] = rest;
  const facts = JSON.parse(data ?? '{}') as Partial<JobFacts>;
  if (facts.version !== 1) return undefined;
  const state = stateOf(outcome, running === 1);
  const hasEnded = state !== 'waiting' && state !== 'running';
  return {
    id,
    facts: facts as JobFacts,
    state,
    arrival: Number(arrival ?? 0),
    createdMs: Number(created ?? 0),
    startedMs: numberOf(started),
    endedMs: hasEnded ? numberOf(ended) : null,
    expiresMs: hasEnded && retained !== '' ? Math.round(Number(retained)) : null,
    attempts: Number(made ?? 0) + (running === 1 ? 1 : 0),
    runs: Number(begun ?? 0),
    error: hasEnded && code ? { code, message: message ?? reason ?? '' } : null,
    gpuMs: hasEnded ? numberOf(gpuMs) : null,
    swapMs: hasEnded ? numberOf(swapMs) : null,
    absences: absencesOf(away ?? '', numberOf(parked)),
    lease: lease ? (JSON.parse(lease) as Record<string, unknown>) : null,
    answer: answerOf(log, endMarker),
  };
}

function stateOf(outcome: string | null | undefined, isRunning: boolean): JobState {
  const ended = states.find((state) => state === outcome);
  return ended ?? (isRunning ? 'running' : 'waiting');
}

function answerOf(lastEntry: string, endMarker: string): JobRecord['answer'] {
  if (lastEntry === '') return null;
  const [run, sequence] = lastEntry.split('-');
  if (endMarker === '') return { run: Number(run), bytes: Number(sequence), isWhole: false };
  const end = JSON.parse(endMarker) as ResponseEnd;
  return { run: Number(run), bytes: end.ok ? end.bytes : 0, isWhole: end.ok };
}

const numberOf = (text: string | null | undefined): number | null =>
  text === null || text === undefined || text === '' ? null : Number(text);
