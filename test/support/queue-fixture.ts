import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { BullGpuWorker } from '../../src/adapters/redis/bull-gpu-worker.ts';
import type { RunReport } from '../../src/adapters/redis/bull-gpu-worker.ts';
import { BullJobQueue } from '../../src/adapters/redis/bull-job-queue.ts';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { GpuOwner } from '../../src/adapters/redis/gpu-owner.ts';
import { poolKeys } from '../../src/adapters/redis/keys.ts';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';
import { FileBodyStore } from '../../src/adapters/storage/file-body-store.ts';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';
import type { AttendShot } from '../../src/ports/film-store.ts';
import type { ClaimedJob, JobFacts, NewJob, RunJob } from '../../src/ports/job-queue.ts';

/** Keep times of tests: long enough for none to matter. */
export const KEEP_TIMES = { graceMs: 60_000, keyMs: 60_000, syncMs: 60_000, asyncMs: 60_000 };

/** A job with unremarkable facts. `points` also sets base and band. */
export function aNewJob(points = 0, facts: Partial<JobFacts> = {}): NewJob {
  const band = points > 50 ? 'interactive' : points < -50 ? 'batch' : 'normal';
  return {
    id: randomUUID(),
    points,
    sealedHead: Buffer.from('sealed'),
    body: Buffer.from('body'),
    caps: { waiting: null, bytes: null },
    facts: {
      version: 1,
      method: 'POST',
      route: '/v1/chat/completions',
      kind: 'text',
      model: 'm',
      stream: false,
      member: 'shared',
      tier: 'free',
      base: points,
      band,
      mode: 'async',
      bodyBytes: 4,
      bodySha256: '0'.repeat(64),
      ...facts,
    },
  };
}

/** A worker of a test, with what it saw. */
export interface TestWorker {
  worker: BullGpuWorker;
  owner: GpuOwner;
  /** Ids in the order of their dispatch, repeats included. */
  dispatched: string[];
  claims: ClaimedJob[];
  reports: RunReport[];
  errors: Error[];
  /** How many jobs waited each time its books started over. */
  rebuilds: number[];
  /** How often it was told that another owner took over. */
  fencedCount: number;
  close: () => Promise<void>;
}

/** Opens queue and workers on one Redis; `close` ends everything that was opened. */
export async function queueFixture(url: string, ingressId = randomUUID()) {
  const keys = poolKeys(`t-${randomUUID().slice(0, 8)}`);
  const dataDir = await mkdtemp(path.join(tmpdir(), 'berth-bodies-'));
  const store = await FileBodyStore.open(dataDir);
  const closers: (() => Promise<void>)[] = [];
  const producer = connectRedis(url, 'prompt', () => undefined);
  const admin = connectRedis(url, 'patient', () => undefined);
  await Promise.all([whenReady(producer, 5000), whenReady(admin, 5000)]);
  const queue = new BullJobQueue({
    redis: producer,
    keys,
    ingressId,
    waitingCap: 20_000,
    maxAttempts: 5,
    keep: KEEP_TIMES,
  });

  const around: { residentModel: string | null; rules: Rules; attend?: AttendShot } = {
    residentModel: null,
    rules: defaultRules,
  };

  const startWorker = async (run: RunJob, redisUrl = url): Promise<TestWorker> => {
    const redis = connectRedis(redisUrl, 'patient', () => undefined);
    const blocking = connectRedis(url, 'blocking', () => undefined);
    const clock = new RedisClock();
    const owner = await GpuOwner.acquire({
      redis,
      keys,
      clock,
      name: 'gpu-0',
      lock: 'test',
      domain: 'test',
      onLost: () => undefined,
    });
    if ('heldBy' in owner) throw new Error(owner.heldBy);
    const seen: TestWorker = {
      dispatched: [],
      claims: [],
      reports: [],
      errors: [],
      rebuilds: [],
      fencedCount: 0,
      owner,
      worker: new BullGpuWorker({
        redis,
        blocking,
        rules: around.rules,
        residentModel: () => around.residentModel,
        keys,
        clock,
        owner,
        store,
        run,
        ...(around.attend === undefined ? {} : { attend: around.attend }),
        retention: { syncMs: 60_000, completedMs: 60_000, failedMs: 60_000 },
        onDispatch: (job) => {
          seen.dispatched.push(job.id);
          seen.claims.push(job);
        },
        onReport: (report) => void seen.reports.push(report),
        onRebuilt: (waiting) => void seen.rebuilds.push(waiting),
        onForced: () => void seen.errors.push(new Error('a pick was forced')),
        onFenced: () => {
          seen.fencedCount += 1;
        },
        onError: (error) => void seen.errors.push(error),
      }),
      close: async () => {
        await seen.worker.stop(50);
        redis.disconnect();
      },
    };
    closers.push(seen.close);
    await seen.worker.start();
    return seen;
  };

  const closeWorkers = async (): Promise<void> => {
    for (const close of closers.splice(0)) await close();
  };

  return {
    keys,
    /** What workers go by: the rules from their start, the resident model at any time. */
    around,
    ingressId,
    queue,
    store,
    producer,
    /** A connection for looking at keys. */
    admin,
    startWorker,
    /** Ends the workers started so far. */
    closeWorkers,
    close: async () => {
      await closeWorkers();
      await queue.close();
      producer.disconnect();
      admin.disconnect();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
