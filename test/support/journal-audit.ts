import type { Redis } from 'ioredis';
import { nearestBand } from '../../src/policy/band.ts';
import { jobId, memberId, type WaitingJob } from '../../src/policy/job.ts';
import type { Rules } from '../../src/policy/rules.ts';
import { happen, oraclePick, replay, type Oracle } from '../policy/oracle.ts';

/** What an audit of a queue's journal found. */
export interface JournalAudit {
  readonly entries: number;
  readonly dispatches: number;
  /** Dispatches of another job than the one that should have gone, or with other lanes passed over, in words. */
  readonly wrong: readonly string[];
  /** Jobs that came, by what became of them; `left` are still there. */
  readonly fates: Readonly<Record<'ended' | 'removed' | 'left', number>>;
  /** Jobs that ended or went away more than once, or that nobody had seen come. */
  readonly doubled: readonly string[];
  readonly handedBack: number;
  /** Dispatches with more than one member waiting in the band of the job that went. */
  readonly contested: number;
  /** Most jobs that ever waited at a dispatch. */
  readonly mostWaiting: number;
}

interface Entry {
  readonly id: string;
  readonly kind: string;
  readonly atMs: number;
  readonly extra: string;
  readonly job: WaitingJob;
}

/**
 * Replays the journal that the queue's own scripts wrote, from its first entry, into the oracle, and asks the oracle
 * at each dispatch for its pick just before.
 *
 * @param loaded the model that a job's nth run left in GPU memory; undefined when that run never began
 */
export async function auditJournal(
  redis: Redis,
  stream: string,
  rules: Rules,
  loaded: (id: string, run: number) => string | undefined,
): Promise<JournalAudit> {
  const raw = await redis.xrange(stream, '-', '+');
  const entries = raw.map(([id, flat]) => read(id, flat, rules));
  const audit = new Audit(rules, loaded);
  for (const [index, entry] of entries.entries()) {
    if (Number(entry.id.split('-')[0]) !== index + 1) throw new Error(`a gap before ${entry.id}`);
    audit.enter(entry);
  }
  return audit.result(entries.length);
}

function read(id: string, flat: readonly string[], rules: Rules): Entry {
  const fields: Record<string, string> = {};
  for (let at = 0; at + 1 < flat.length; at += 2) fields[flat[at] ?? ''] = flat[at + 1] ?? '';
  const { k: kind = '', t, j = '', f = '', x: extra = '' } = fields;
  const facts = JSON.parse(f) as {
    m: string;
    r: string;
    p: number;
    o: string;
    a: number;
    s: number;
  };
  const job: WaitingJob = {
    id: jobId(j),
    member: memberId(facts.m),
    tier: facts.r,
    band: nearestBand(facts.p, rules),
    base: facts.p,
    model: facts.o,
    arrivalMs: facts.a,
    sequence: facts.s,
  };
  return { id, kind, atMs: Number(t), extra, job };
}

class Audit {
  readonly #rules: Rules;
  readonly #loaded: (id: string, run: number) => string | undefined;
  readonly #oracle: Oracle;
  readonly #runs = new Map<string, number>();
  readonly #fate = new Map<string, 'ended' | 'removed' | 'left'>();
  readonly #backoffs = new Map<string, number>();
  readonly #wrong: string[] = [];
  readonly #doubled: string[] = [];
  #resident: string | null = null;
  #dispatches = 0;
  #handedBack = 0;
  #contested = 0;
  #mostWaiting = 0;

  constructor(rules: Rules, loaded: (id: string, run: number) => string | undefined) {
    this.#rules = rules;
    this.#loaded = loaded;
    this.#oracle = replay([], rules);
  }

  enter(entry: Entry): void {
    const { kind, job, atMs, extra } = entry;
    const { id } = job;
    const isRunning = this.#oracle.running?.job.id === id;
    const { waiting } = this.#oracle;
    if (kind === 'arrive' && waiting.some((other) => other.id === id)) {
      // It waits already: its backoff is over.
      this.#backoffs.delete(id);
      this.#oracle.waiting = waiting.map((other) =>
        other.id === id ? { ...other, eligibleAtMs: 0 } : other,
      );
    } else if (kind === 'arrive') {
      if (this.#fate.has(id)) this.#doubled.push(`${id} came twice`);
      this.#fate.set(id, 'left');
      this.#happen({ kind: 'arrive', job });
    } else if (kind === 'dispatch') {
      this.#dispatch(entry);
    } else if (kind === 'remove') {
      this.#leave(id, 'removed');
      this.#backoffs.delete(id);
      this.#happen({ kind: 'remove', id });
    } else if (kind === 'end' && isRunning) {
      this.#leave(id, 'ended');
      this.#happen({ kind: 'end', atMs, usedMs: Number(extra) });
    } else if (kind === 'back' && isRunning) {
      const [usedMs = 0, eligibleAtMs = 0] = extra.split(' ').map(Number);
      this.#handedBack += 1;
      // It may run from the moment the queue says so; that this is not too late is looked at when others run.
      const isLater = eligibleAtMs > atMs;
      if (isLater) this.#backoffs.set(id, eligibleAtMs);
      const from = isLater ? Infinity : 0;
      this.#happen({ kind: 'handBack', atMs, usedMs, eligibleAtMs: from });
    } else {
      this.#wrong.push(`${entry.id}: ${kind} of ${id}, which does not run`);
    }
  }

  result(entries: number): JournalAudit {
    const fates = { ended: 0, removed: 0, left: 0 };
    for (const fate of this.#fate.values()) fates[fate] += 1;
    return {
      entries,
      dispatches: this.#dispatches,
      wrong: this.#wrong,
      fates,
      doubled: this.#doubled,
      handedBack: this.#handedBack,
      contested: this.#contested,
      mostWaiting: this.#mostWaiting,
    };
  }

  #dispatch({ id: place, job, atMs, extra }: Entry): void {
    const oracle = this.#oracle;
    this.#dispatches += 1;
    this.#mostWaiting = Math.max(this.#mostWaiting, oracle.waiting.length);
    const inBand = oracle.waiting.filter(({ band }) => band === job.band);
    if (new Set(inBand.map(({ member }) => member)).size > 1) this.#contested += 1;
    const right = oraclePick(oracle, this.#resident, atMs, this.#rules);
    if (right?.id !== job.id) {
      this.#wrong.push(`${place}: ${words(job)} went and not ${right ? words(right) : 'none'}`);
    }
    for (const [id, dueMs] of this.#backoffs) {
      if (dueMs <= atMs) this.#wrong.push(`${place}: the backoff of ${id} ended at ${dueMs}`);
    }
    this.#happen({ kind: 'dispatch', id: job.id, atMs, residentModel: this.#resident });
    const passedOver = JSON.stringify((JSON.parse(extra || '[]') as string[]).toSorted());
    const expected = JSON.stringify(oracle.running?.passedOver.toSorted());
    if (passedOver !== expected) {
      this.#wrong.push(`${place}: passed over ${passedOver} and not ${expected}`);
    }
    const run = (this.#runs.get(job.id) ?? 0) + 1;
    this.#runs.set(job.id, run);
    this.#resident = this.#loaded(job.id, run) ?? this.#resident;
  }

  #leave(id: string, fate: 'ended' | 'removed'): void {
    if (this.#fate.get(id) !== 'left') this.#doubled.push(`${id} ${fate}`);
    this.#fate.set(id, fate);
  }

  #happen(event: Parameters<typeof happen>[1]): void {
    happen(this.#oracle, event, this.#rules);
  }
}

function words({ id, member, base, tier, model, arrivalMs }: WaitingJob): string {
  return `${id} (${member}, ${base}, ${tier}, ${model}, ${arrivalMs})`;
}
