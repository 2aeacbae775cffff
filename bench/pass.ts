import { startRedis } from '../test/support/redis-server.ts';
import { eventually } from '../test/support/eventually.ts';
import { timeAcceptance } from './acceptance.ts';
import { BareQueue } from './bare-queue.ts';
import { BerthProcesses } from './berth-processes.ts';
import { BerthQueue } from './berth-queue.ts';
import { measureBesideNginx } from './beside-nginx.ts';
import { GapGpu } from './idle-gap.ts';
import { growthDuring } from './memory-watch.ts';
import type { MeasuredQueue } from './measured-queue.ts';
import type { BenchModelServer } from './model-server.ts';
import { quantile } from './statistics.ts';
import { chat, timeChunks, timeFirstBytes, timeLargeAnswer } from './streaming.ts';

/** When Redis flushes its append-only file. */
export type Fsync = 'everysec' | 'always';

/** How much one pass measures. */
export interface PassSize {
  gaps: number;
  backlog: number;
  pairs: number;
  /** Requests that pass the queue by, through Berth and through nginx. */
  passed: number;
  chunks: number;
  largeBytes: number;
  warmUps: number;
}

/** What one pass measured, by name; units are in the names (see figures.ts for the meaning). */
export type Figures = Record<string, number>;

/**
 * One pass on a Redis and processes of its own: Berth and the bare queue on the same Redis, one after the other, with
 * the other one's worker idle or held. `isBareFirst` alternates between passes.
 */
export async function measurePass(
  server: BenchModelServer,
  fsync: Fsync,
  isBareFirst: boolean,
  size: PassSize,
): Promise<Figures> {
  const redis = await startRedis({ fsync });
  const stops: (() => Promise<void>)[] = [async () => redis.stop()];
  try {
    const berth = await BerthProcesses.start(redis.url, server.url);
    stops.unshift(async () => berth.stop());
    const berthQueue = await BerthQueue.open(redis.url, berth.dataDir);
    stops.unshift(async () => berthQueue.close());
    const bareQueue = await BareQueue.start(redis.socket, server.url, berth.dataDir);
    stops.unshift(async () => bareQueue.stop());
    const figures: Figures = {};
    await measureStreams(server, berth, size, figures);
    const { passed: requests, chunks, largeBytes } = size;
    Object.assign(
      figures,
      await measureBesideNginx(server, berth.url, { requests, chunks, largeBytes }),
    );
    await measureClientGaps(server, berth.url, size, figures);
    const lanes = [gapLane(server, berthQueue), gapLane(server, bareQueue)];
    if (isBareFirst) lanes.reverse();
    for (const lane of lanes) {
      await lane.queue.submit();
      await lane.gpu.measure(size.warmUps);
    }
    for (const lane of lanes)
      record(figures, `gap-0.${lane.queue.lane}`, await lane.gpu.measure(size.gaps));
    for (const { queue } of lanes)
      figures[`accepted.${queue.lane}`] = await timeAcceptance(queue, size.backlog);
    for (const lane of lanes) {
      figures[`waiting.${lane.queue.lane}`] = await lane.queue.waiting();
      record(figures, `gap-backlog.${lane.queue.lane}`, await lane.gpu.measure(size.gaps));
    }
    return figures;
  } finally {
    for (const stop of stops) await stop();
  }
}

function gapLane(server: BenchModelServer, queue: MeasuredQueue) {
  return { queue, gpu: new GapGpu(server, queue.lane, async () => queue.submit()) };
}

function record(figures: Figures, name: string, samples: readonly number[]): void {
  figures[`${name}.p50`] = quantile(samples, 0.5);
  figures[`${name}.p99`] = quantile(samples, 0.99);
}

async function measureStreams(
  server: BenchModelServer,
  berth: BerthProcesses,
  size: PassSize,
  figures: Figures,
): Promise<void> {
  await timeFirstBytes(server, berth.url, Math.ceil(size.warmUps / 3));
  const first = await timeFirstBytes(server, berth.url, size.pairs);
  await timeChunks(server, berth.url, Math.ceil(size.warmUps / 3));
  const chunk = await timeChunks(server, berth.url, size.chunks);
  for (const [name, { berth: through, direct }] of Object.entries({ first, chunk })) {
    record(figures, `${name}.berth`, through);
    record(figures, `${name}.direct`, direct);
    figures[`${name}.added`] = quantile(through, 0.5) - quantile(direct, 0.5);
  }
  await timeLargeAnswer(berth.url, size.largeBytes / 10);
  const pids = [berth.worker.pid ?? 0, berth.ingress.pid ?? 0];
  const [worker = NaN, ingress = NaN] = await growthDuring(pids, async () => {
    figures['large.berth'] = await timeLargeAnswer(berth.url, size.largeBytes);
  });
  figures['large.worker-growth'] = worker;
  figures['large.ingress-growth'] = ingress;
  figures['large.direct'] = await timeLargeAnswer(server.url, size.largeBytes);
}

/** The gap while clients are connected: the answer before is still being relayed when the next job is fetched. */
async function measureClientGaps(
  server: BenchModelServer,
  berthUrl: string,
  size: PassSize,
  figures: Figures,
): Promise<void> {
  const chats = new Set<Promise<void>>();
  let isOver = false;
  const add = (): void => {
    if (isOver) return;
    const one = chat(berthUrl, 'clients');
    chats.add(one);
    void one.then(() => chats.delete(one));
  };
  const keepFilled = async (): Promise<void> => {
    add();
    return Promise.resolve();
  };
  const gpu = new GapGpu(server, 'clients', keepFilled, 10);
  add();
  record(figures, 'gap-clients.berth', await gpu.measure(size.gaps));
  isOver = true;
  gpu.release();
  await Promise.all(chats);
  await eventually(() => chats.size === 0, { what: 'the last clients to be served' });
}
