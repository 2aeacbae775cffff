import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readDispatchRecords } from '../../src/adapters/redis/read-dispatch-records.ts';
import type { DemoModel } from '../../src/demo-model-server/catalogue.ts';
import { createDemoModelServer } from '../../src/demo-model-server/server.ts';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';
import type { Workload } from '../../src/simulate/workload.ts';
import { BerthSystem } from './berth-system.ts';
import { compressedRules } from './compressed-rules.ts';
import { bookedRuns } from './day-books.ts';
import { DayPlay, type DayWorkload, type PlayedDay } from './day-play.ts';

/** How a day is played. */
export interface DayOptions {
  /** How many times as fast as the workload says. */
  readonly factor: number;
  /** Uncompressed; default: the rules Berth has when nothing is configured. */
  readonly rules?: Rules;
}

/** A system that is ready for its day. */
export interface PreparedDay {
  /** Plays it. Resolves when everything has run, or at the workload's `stopMs`. */
  play(): Promise<PlayedDay>;
  /** Resolves when its first run has ended. */
  readonly underWay: Promise<void>;
  /** Ends the system; a day that is still played fails. */
  close(): Promise<void>;
}

/**
 * Starts real processes, a Redis of their own and the demo model server for a workload that is to be played over
 * HTTP, every job a connection of its own that waits. Apart from `play`, so that nothing starts up while a day is
 * measured beside it.
 */
export async function prepareDay(workload: DayWorkload, options: DayOptions): Promise<PreparedDay> {
  const { factor, rules = defaultRules } = options;
  const folder = await mkdtemp(path.join(tmpdir(), 'berth-day-'));
  const config = path.join(folder, 'config.json');
  await writeFile(config, JSON.stringify(compressedRules(factor, rules)));
  const day = new DayPlay(workload, factor, rules);
  const demo = createDemoModelServer({
    models: modelsOf(workload),
    coldLoadMs: workload.swapMs,
    speed: factor,
    intercept: (record) => day.began(record, demo),
    onRequestEnd: (record) => day.ended(record),
  });
  const tidy = async (): Promise<void> => {
    await demo.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await demo.listen(0, '127.0.0.1');
    // The scorer is not what is measured here, and dispatch is right without it.
    const env = { BERTH_CONFIG: config, SCORER_INTERVAL_SECONDS: '15', LOG_LEVEL: 'warn' };
    const system = await BerthSystem.start({ modelServerUrl: demo.url, env });
    return {
      underWay: day.underWay,
      play: async () => {
        await day.play(system.url);
        const records = await readDispatchRecords(system.redis.url, 'gpu');
        return { ...day.result(), booked: bookedRuns(records), overlaps: demo.overlaps };
      },
      close: async () => {
        await system.stop();
        await tidy();
      },
    };
  } catch (error) {
    await tidy();
    throw error;
  }
}

function modelsOf(workload: Workload): DemoModel[] {
  const items = [...workload.arrivals, ...workload.chains.flatMap(({ items }) => items)];
  const names = new Set(items.map(({ model }) => model));
  return [...names].map((id) => ({ id, kind: 'image', name: id, aliases: [] }));
}
