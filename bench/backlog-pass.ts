import { startRedis } from '../test/support/redis-server.ts';
import { MODEL_COUNT, settingName } from './backlog-settings.ts';
import { BareQueue } from './bare-queue.ts';
import { BerthProcesses } from './berth-processes.ts';
import { BerthQueue } from './berth-queue.ts';
import { GapGpu } from './idle-gap.ts';
import { JOB_BODY } from './measured-queue.ts';
import type { MeasuredQueue } from './measured-queue.ts';
import { residentMb } from './memory-watch.ts';
import type { BenchModelServer } from './model-server.ts';
import type { Figures } from './pass.ts';
import { timeQueueView } from './queue-view-latency.ts';
import { dataBytes } from './redis-memory.ts';
import { nextScorerPass } from './scorer-log.ts';
import { quantile } from './statistics.ts';
import { measureSwap } from './swap-effect.ts';

/** How much one pass over the backlogs measures. */
export interface BacklogSize {
  /** Gaps of each queue at each backlog, in `blocks` that alternate between the two. */
  gaps: number;
  blocks: number;
  warmUps: number;
  views: number;
  swaps: number;
  /** Backlogs, least first. */
  waiting: readonly number[];
}

/** From how many waiting jobs on the scorer, the pages and the memory are looked at. */
const LARGE = 10_000;

interface Lane {
  readonly queue: MeasuredQueue;
  readonly gpu: GapGpu;
}

/**
 * One pass for so many members, on a Redis (fsync everysec) and processes of its own. Both queues are filled from one
 * backlog to the next, and their gaps are measured in turns.
 */
export async function measureBacklogs(
  server: BenchModelServer,
  members: number,
  isBareFirst: boolean,
  size: BacklogSize,
): Promise<Record<string, Figures>> {
  const redis = await startRedis();
  const stops: (() => Promise<void>)[] = [async () => redis.stop()];
  try {
    const mix = { members, models: MODEL_COUNT };
    const processes = await BerthProcesses.start(redis.url, server.url);
    stops.unshift(async () => processes.stop());
    const queue = await BerthQueue.open(redis.url, processes.dataDir, mix);
    stops.unshift(async () => queue.close());
    const bareQueue = await BareQueue.start(redis.socket, server.url, processes.dataDir, mix);
    stops.unshift(async () => bareQueue.stop());
    const berth = laneOf(server, queue);
    const bare = laneOf(server, bareQueue);
    const lanes = isBareFirst ? [bare, berth] : [berth, bare];
    for (const lane of lanes) {
      await lane.queue.fill(2);
      await lane.gpu.measure(size.warmUps);
    }
    const settings: Record<string, Figures> = {};
    for (const waiting of size.waiting) {
      const figures: Figures = {};
      settings[settingName({ waiting, members })] = figures;
      await fillUp(bare, waiting, redis.socket, figures);
      await fillUp(berth, waiting, redis.socket, figures, async () => {
        if (waiting >= LARGE) figures['scorer.pass'] = await nextScorerPass(processes, waiting);
      });
      await measureGaps(lanes, size, figures);
      if (waiting < LARGE) continue;
      figures['rss.worker'] = residentMb(processes.worker.pid ?? 0);
      figures['rss.scorer'] = residentMb(processes.scorer.pid ?? 0);
      if (waiting > LARGE) continue;
      Object.assign(figures, await timeQueueView(processes.url, size.views));
      Object.assign(figures, await measureSwap(server, redis.url, berth.gpu, size.swaps));
    }
    return settings;
  } finally {
    for (const stop of stops) await stop();
  }
}

function laneOf(server: BenchModelServer, queue: MeasuredQueue): Lane {
  return { queue, gpu: new GapGpu(server, queue.lane, async () => queue.submit()) };
}

/** Fills a queue up, and takes down what each job added to Redis beyond its body once `settled` has resolved. */
async function fillUp(
  { queue }: Lane,
  waiting: number,
  socket: string,
  figures: Figures,
  settled: () => Promise<void> = async () => Promise.resolve(),
): Promise<void> {
  const bytesBefore = await dataBytes(socket);
  const count = Math.max(0, waiting - (await queue.waiting()));
  const startedAt = performance.now();
  await queue.fill(count);
  figures[`fill.${queue.lane}`] = count / ((performance.now() - startedAt) / 1000);
  await settled();
  const perJob = ((await dataBytes(socket)) - bytesBefore) / count;
  figures[`job-kb.${queue.lane}`] = (perJob - JOB_BODY.length) / 1000;
}

async function measureGaps(
  lanes: readonly Lane[],
  { gaps, blocks }: BacklogSize,
  figures: Figures,
): Promise<void> {
  const samples = new Map<Lane, number[]>(lanes.map((lane) => [lane, []]));
  for (let block = 0; block < blocks; block += 1) {
    for (const lane of block % 2 === 0 ? lanes : lanes.toReversed())
      samples.get(lane)?.push(...(await lane.gpu.measure(Math.ceil(gaps / blocks))));
  }
  for (const [{ queue }, each] of samples) {
    figures[`gap.${queue.lane}.p50`] = quantile(each, 0.5);
    figures[`gap.${queue.lane}.p99`] = quantile(each, 0.99);
  }
}
