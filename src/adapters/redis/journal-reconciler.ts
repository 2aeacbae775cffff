import type { Redis } from 'ioredis';
import type { Ledger } from '../../policy/ledger.ts';
import type { PoolKeys } from './keys.ts';
import type { Scripts } from './scripts.ts';

const PAGE = 1000;

/**
 * Finds the jobs that stand elsewhere in BullMQ's sets than in the ledger, and has the journal told: BullMQ's own
 * remove, promote, drain and add keep no journal. Returns how many entries were written.
 */
export async function reconcile(
  around: { redis: Redis; scripts: Scripts; keys: PoolKeys },
  ledger: Ledger,
): Promise<number> {
  const { redis, scripts, keys } = around;
  const eligible = new Set<string>(await redis.zrange(`${keys.queue}prioritized`, '0', '-1'));
  const inBackoff = new Set<string>(await redis.zrange(`${keys.queue}delayed`, '0', '-1'));
  const differing: string[] = [];
  for (const job of ledger.jobs.values()) {
    const isRight = ledger.isInBackoff(job.id) ? inBackoff.has(job.id) : eligible.has(job.id);
    if (!isRight) differing.push(job.id);
    eligible.delete(job.id);
    inBackoff.delete(job.id);
  }
  differing.push(...eligible, ...inBackoff);
  let told = 0;
  for (let start = 0; start < differing.length; start += PAGE) {
    const page = [...new Set(differing.slice(start, start + PAGE))];
    const own = JSON.stringify({ pool: keys.pool, queue: keys.queue });
    told += Number(await scripts.run('reconcile', keys.pool, own, ...page));
  }
  return told;
}
