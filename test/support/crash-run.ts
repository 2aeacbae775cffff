import { setMaxListeners } from 'node:events';
import { Random } from '../../src/simulate/random.ts';
import { BerthSystem } from './berth-system.ts';
import { CrashHistory } from './crash-history.ts';
import { CrashKiller } from './crash-killer.ts';
import { produce, readJob, readResult } from './crash-producer.ts';
import type { CrashClient } from './crash-producer.ts';
import { RawUpstream } from './raw-upstream.ts';
import { recordGenerations } from './recorded-generations.ts';

/** How much is submitted, and for how long it is killed. */
export interface CrashRunOptions {
  readonly seed: number;
  readonly producers: number;
  readonly killMs: number;
}

/**
 * Producers submit and follow jobs while processes die. When the last job has ended everything is killed once more,
 * and every job and result read again. Stops what it started.
 */
export async function crashRun(
  { seed, producers, killMs }: CrashRunOptions,
  history: CrashHistory,
): Promise<void> {
  const upstream = await RawUpstream.start();
  recordGenerations(upstream, history, new Random(seed + 1));
  try {
    const system = await BerthSystem.start({ modelServerUrl: upstream.url, fsync: 'always' });
    await crash(system, { seed, producers, killMs }, history).finally(async () => system.stop());
  } finally {
    await upstream.close();
  }
}

async function crash(
  system: BerthSystem,
  { seed, producers, killMs }: CrashRunOptions,
  history: CrashHistory,
): Promise<void> {
  const failed = new AbortController();
  setMaxListeners(0, failed.signal);
  const client = (random: Random): CrashClient => ({
    url: () => system.url,
    history,
    random,
    signal: failed.signal,
  });
  let isOver = false;
  const all = Array.from({ length: producers }, async (_, index) =>
    produce(client(new Random(seed + 2 + index)), `p${index}`, () => isOver),
  );
  const producing = Promise.all(all);
  producing.catch(() => undefined);
  const killer = new CrashKiller(system, history);
  try {
    await killer.atRandom(new Random(seed), killMs);
    isOver = true;
    await producing;
    await killer.killAndStart(['redis', 'gpu', 'scorer', 'ingress']);
    await system.ready();
    await readAgain(client(new Random(seed)));
  } finally {
    killer.rest();
    failed.abort();
    await Promise.allSettled(all);
  }
}

/** Reads every job that was ever accepted, and what it gave, a few at a time. */
async function readAgain(client: CrashClient): Promise<void> {
  const accepted = client.history.events.filter((event) => event.kind === 'accepted');
  const left = [...new Set(accepted.map(({ jobId }) => jobId))];
  const lane = async (): Promise<void> => {
    for (let jobId = left.pop(); jobId !== undefined; jobId = left.pop())
      if ((await readJob(client, jobId)) === 'completed') await readResult(client, jobId);
  };
  await Promise.all(Array.from({ length: 8 }, lane));
}
