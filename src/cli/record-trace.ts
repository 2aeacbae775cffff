import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readDispatchRecords } from '../adapters/redis/read-dispatch-records.ts';
import type { BerthConfig } from '../config/load.ts';
import { recordedTrace } from '../simulate/recorded-trace.ts';
import { traceText } from '../simulate/trace.ts';
import { CommandError } from './command-error.ts';

/**
 * Writes what ran, as far back as dispatch records are kept, into a file that `npm run simulate -- --trace` reads (mode
 * 0600: it names members). Returns what the operator should know, a line each.
 *
 * @throws {CommandError} when Redis cannot be reached or nothing has run
 */
export async function recordTrace(
  config: Pick<BerthConfig, 'redis' | 'dataDir' | 'pool'>,
  file: string,
): Promise<string[]> {
  const url = redisUrl(config);
  const records = await readDispatchRecords(url, config.pool).catch((error: unknown) => {
    // Not the address: it may hold a password.
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(`the records cannot be read: ${why}`);
  });
  const { lines, unended, unmeasuredLoads, loadMs } = recordedTrace(records);
  if (lines.length === 0) throw new CommandError(`no run of pool ${config.pool} is on record`);
  writeFileSync(file, traceText(lines), { mode: 0o600 });
  const swapSeconds = loadMs === undefined ? '' : ` --swap ${Math.round(loadMs / 1000)}`;
  return [
    `${lines.length} jobs are in ${file}; try npm run simulate -- --trace ${file}${swapSeconds}`,
    ...(unended > 0 ? [`left out, without an end so far: ${unended}`] : []),
    ...(unmeasuredLoads > 0
      ? [`runs with a load that nobody measured, which is in their seconds: ${unmeasuredLoads}`]
      : []),
  ];
}

/** REDIS_URL, or the embedded Redis of a Berth that runs on this DATA_DIR. */
function redisUrl({ redis, dataDir }: Pick<BerthConfig, 'redis' | 'dataDir'>): string {
  if (redis.url !== null) return redis.url;
  const socket = path.join(dataDir, 'redis.sock');
  if (existsSync(socket)) return `unix://${socket}`;
  throw new CommandError(
    `REDIS_URL is not set and no embedded Redis runs in ${dataDir}: start Berth, or set REDIS_URL`,
  );
}
