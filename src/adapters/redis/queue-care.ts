import type { Redis } from 'ioredis';
import type { EvictCode } from '../../errors.ts';
import type { JobFacts } from '../../ports/job-queue.ts';
import type { BandBacklog } from '../../ports/telemetry.ts';
import { IngressVouching } from './ingress-vouching.ts';
import type { PoolKeys } from './keys.ts';
import { planNumbers } from './plan-numbers.ts';
import type { RedisClock } from './redis-clock.ts';
import { Scripts } from './scripts.ts';

const PAGE = 1000;
/** Jobs whose numbers are read at once. */
const SCORES_PAGE = 10_000;
/** Jobs rewritten in one script, so that no other command waits long. */
const NUMBERS_PAGE = 200;

/** A waiting job that ended without its own ingress asking. */
export interface Eviction {
  jobId: string;
  outcome: 'evicted' | 'cancelled' | 'expired';
  code: EvictCode;
  facts: JobFacts;
  waitedMs: number;
}

/** The scorer's duties that touch Redis. */
export class QueueCare {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;
  private readonly clock: RedisClock;
  private readonly scripts: Scripts;
  private readonly vouching: IngressVouching;

  constructor(redis: Redis, keys: PoolKeys, clock: RedisClock) {
    this.redis = redis;
    this.keys = keys;
    this.clock = clock;
    this.scripts = new Scripts(redis);
    this.vouching = new IngressVouching(redis, keys);
  }

  /** Puts every waiting job back to its place; returns how many were not there. */
  async repair(): Promise<number> {
    let repaired = 0;
    for (let start = 0; ; start += PAGE) {
      const own = this.own({ start, stop: start + PAGE - 1 });
      const reply = await this.scripts.run('repair', this.keys.pool, own);
      const [moved, seen] = reply as [number, number];
      repaired += moved;
      if (seen < PAGE) return repaired;
    }
  }

  /** Ends what has come due: start deadlines, times to cancel, times of grace. Returns how many entries there were. */
  async sweepDeadlines(): Promise<number> {
    const own = this.own({ limit: 500 });
    return Number(await this.scripts.run('sweep-deadlines', this.keys.pool, own));
  }

  /**
   * Evicts waiting jobs whose ingress died; returns all ends of waiting jobs that nobody reported yet. A job with an
   * Idempotency-Key has `graceMs` left.
   */
  async sweepAbandoned(graceMs: number): Promise<Eviction[]> {
    await this.vouching.vouch();
    const sentAt = performance.now();
    const own = this.own({ expectedNow: this.clock.estimate(), limit: 500, graceMs });
    const [now, told] = (await this.scripts.run('sweep-abandoned', this.keys.pool, own)) as [
      string,
      string[],
    ];
    this.clock.observe(Number(now), sentAt);
    return told.map((json) => {
      const told = JSON.parse(json) as Record<string, string | number>;
      return {
        jobId: String(told.id),
        outcome: String(told.outcome) as Eviction['outcome'],
        code: String(told.code) as EvictCode,
        facts: JSON.parse(String(told.data)) as JobFacts,
        waitedMs: Number(told.waitedMs),
      };
    });
  }

  /** Removes jobs whose keeping is over, and, when memory is short, `early` more of the oldest; returns their ids. */
  async sweepRetention(early: number): Promise<string[]> {
    const removed: string[] = [];
    for (;;) {
      const ids = (await this.scripts.run(
        'sweep-retention',
        this.keys.pool,
        this.own({ limit: PAGE, early: 0 }),
      )) as string[];
      removed.push(...ids);
      if (ids.length < PAGE) break;
    }
    if (early > 0) {
      removed.push(
        ...((await this.scripts.run(
          'sweep-retention',
          this.keys.pool,
          this.own({ limit: PAGE, early }),
        )) as string[]),
      );
    }
    return removed;
  }

  /** What waits in each band, read in pages so that no other command waits long. */
  async backlog(): Promise<Record<string, BandBacklog>> {
    const [seconds, micros] = await this.redis.time();
    const nowMs = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    const bands: Record<string, BandBacklog> = {};
    for (const set of ['prioritized', 'delayed']) {
      for (let start = 0; ; start += PAGE) {
        const ids = await this.redis.zrange(
          `${this.keys.queue}${set}`,
          String(start),
          String(start + PAGE - 1),
        );
        const pipeline = this.redis.pipeline();
        for (const id of ids) pipeline.hmget(`${this.keys.queue}${id}`, 'band', 'timestamp');
        for (const [, reply] of (await pipeline.exec()) ?? []) {
          const [band, timestamp] = reply as (string | null)[];
          if (!band) continue;
          const entry = (bands[band] ??= { waiting: 0, oldestWaitMs: 0 });
          entry.waiting += 1;
          entry.oldestWaitMs = Math.max(entry.oldestWaitMs, nowMs - Number(timestamp));
        }
        if (ids.length < PAGE) break;
      }
    }
    return bands;
  }

  /** Gives the waiting jobs the numbers of this order, first to last; returns how many were rewritten. */
  async renumber(order: readonly string[]): Promise<number> {
    const changes = planNumbers(order, await this.numbers());
    let written = 0;
    for (let start = 0; start < changes.length; start += NUMBERS_PAGE) {
      const page = changes.slice(start, start + NUMBERS_PAGE);
      const triples = page.flatMap(({ id, score }) => [
        id,
        Math.floor(score / 2 ** 32),
        score % 2 ** 32,
      ]);
      written += Number(
        await this.scripts.run('renumber', this.keys.pool, this.own({}), ...triples),
      );
    }
    return written;
  }

  private async numbers(): Promise<Map<string, number>> {
    const scores = new Map<string, number>();
    for (let start = 0; ; start += SCORES_PAGE) {
      const [from, to] = [start, start + SCORES_PAGE - 1].map(String) as [string, string];
      const flat = await this.redis.zrange(`${this.keys.queue}prioritized`, from, to, 'WITHSCORES');
      for (let index = 0; index + 1 < flat.length; index += 2) {
        scores.set(flat[index] ?? '', Number(flat[index + 1]));
      }
      if (flat.length < 2 * SCORES_PAGE) return scores;
    }
  }

  /** Lets the board show, for each of these jobs, what its JSON says. */
  async show(terms: readonly { id: string; json: string }[]): Promise<void> {
    for (let start = 0; start < terms.length; start += NUMBERS_PAGE) {
      const page = terms.slice(start, start + NUMBERS_PAGE);
      const pairs = page.flatMap(({ id, json }) => [id, json]);
      await this.scripts.run('show', this.keys.pool, this.own({}), ...pairs);
    }
  }

  /** Which of these jobs, or films, Redis still knows. */
  async known(jobIds: readonly string[]): Promise<Set<string>> {
    const pipeline = this.redis.pipeline();
    for (const id of jobIds)
      pipeline.exists(`${this.keys.queue}${id}`, `${this.keys.pool}:film:${id}`);
    const replies = (await pipeline.exec()) ?? [];
    return new Set(jobIds.filter((_, index) => replies[index]?.[1] === 1));
  }

  /** Tells every process when the last pass ended. */
  async markPassed(): Promise<void> {
    const [seconds] = await this.redis.time();
    await this.redis.set(`${this.keys.pool}:scored`, String(seconds));
  }

  private own(extra: object): string {
    return JSON.stringify({ pool: this.keys.pool, queue: this.keys.queue, ...extra });
  }
}
