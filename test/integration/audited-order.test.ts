import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BullJobQueue } from '../../src/adapters/redis/bull-job-queue.ts';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { nearestBand } from '../../src/policy/band.ts';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';
import { RunAborted, type RunJob } from '../../src/ports/job-queue.ts';
import { Random } from '../../src/simulate/random.ts';
import { startCuttingProxy, type CuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { auditJournal } from '../support/journal-audit.ts';
import { KEEP_TIMES, aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';

const jobs = 2400;
const producers = 4;
const restarts = 6;
const bases = [-100, -100, -99, -98, 0, 0, 7, 49, 51, 100, 100, 130, -400, 900] as const;

/** A point is 20 ms, so that ages, head starts and band clocks all matter within seconds. */
const rules: Rules = {
  ...defaultRules,
  aging: { ...defaultRules.aging, divisorSeconds: 0.02 },
};

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
const proxies: CuttingProxy[] = [];

beforeAll(async () => {
  redis = await startRedis();
  fixture = await queueFixture(redis.url);
  fixture.around.rules = rules;
});
afterAll(async () => {
  await fixture.close();
  for (const proxy of proxies) await proxy.close();
  await redis.stop();
});

const say = (text: string): void => void process.stdout.write(`${text}\n`);

/** A way to Redis on which one reply in a hundred is lost. */
async function lossy(random: Random, pattern: RegExp): Promise<CuttingProxy> {
  const proxy = await startCuttingProxy(redis.socket, pattern, () => random.next() < 0.01);
  proxies.push(proxy);
  return proxy;
}

/** Submits its share of the jobs and takes some back, while up to 150 wait. Resolves with how many were accepted. */
async function produce(random: Random): Promise<{ submitted: number; takenBack: number }> {
  const proxy = await lossy(random, /evalsha/i);
  const connection = connectRedis(proxy.url, 'prompt', () => undefined);
  await whenReady(connection, 5000);
  const { keys, ingressId, admin } = fixture;
  const queue = new BullJobQueue({
    redis: connection,
    keys,
    ingressId,
    waitingCap: 20_000,
    maxAttempts: 5,
    keep: KEEP_TIMES,
  });
  const sent: string[] = [];
  let [submitted, takenBack] = [0, 0];
  while (submitted < jobs / producers) {
    await eventually(async () => (await admin.zcard(`${keys.queue}prioritized`)) < 150, {
      what: 'the queue to be shorter',
      timeoutMs: 60_000,
    });
    const base = random.pick(bases);
    const job = aNewJob(base, {
      member: `member-${random.whole(1, 6)}`,
      tier: random.pick(['free', 'pro', 'max']),
      model: random.pick(['a', 'b', 'c']),
      band: nearestBand(base, rules),
    });
    try {
      await queue.submit(job);
      submitted += 1;
      sent.push(job.id);
      if (random.next() < 0.1) {
        const fate = await queue.abandon(random.pick([sent[0] ?? '', ...sent]), 'cancelled');
        if (fate === 'evicted') takenBack += 1;
      }
    } catch {
      await eventually(() => connection.status === 'ready', { what: 'Redis to be back' });
    }
  }
  await eventually(async () => (await queue.settleDoubts()) === 0, {
    what: 'doubtful submissions to be settled',
    timeoutMs: 20_000,
  });
  await queue.close();
  connection.disconnect();
  return { submitted, takenBack };
}

test(`of ${jobs} jobs that come, fail, go back and are taken away while workers restart, each dispatch is the oracle's pick`, async () => {
  const seed = Math.floor(Math.random() * 2 ** 32);
  say(`seed ${seed}`);
  const random = new Random(seed);
  const loaded = new Map<string, string>();
  const run: RunJob = async (job, _log, signal) => {
    fixture.around.residentModel = job.facts.model;
    loaded.set(`${job.id} ${job.run}`, job.facts.model);
    const kind = random.next();
    await new Promise<void>((resolve) => setTimeout(resolve, random.whole(0, 4)));
    if (signal.aborted) {
      const why = signal.reason instanceof RunAborted ? signal.reason.why : 'fenced';
      return why === 'shutting_down'
        ? { kind: 'handed-back' }
        : { kind: 'cancelled', code: 'cancelled', forget: false };
    }
    if (kind < 0.1 && job.attemptsMade < 3) {
      const delayMs = random.whole(1, 40);
      return { kind: 'retry', code: 'model_unavailable', message: 'not ready', delayMs };
    }
    if (kind < 0.13) return { kind: 'failed', code: 'model_server_invalid', message: 'refused' };
    return { kind: 'completed' };
  };

  const proxy = await lossy(random, /"(?:fetchNext|expectedNow|token|expect)":/);
  const { admin, keys } = fixture;
  const places = ['prioritized', 'delayed', 'active'];
  const left = async (): Promise<number> => {
    const [prioritized = 0, delayed = 0, active = 0] = await Promise.all(
      places.map(async (place) =>
        place === 'active' ? admin.llen(keys.queue + place) : admin.zcard(keys.queue + place),
      ),
    );
    return prioritized + delayed + active;
  };

  const producing = Promise.all(
    Array.from({ length: producers }, async (_, index) => produce(new Random(seed + index + 1))),
  );
  producing.catch(() => undefined);
  for (let start = 0; start <= restarts; start += 1) {
    const worker = await fixture.startWorker(run, proxy.url);
    if (start === restarts) break;
    await eventually(() => worker.dispatched.length >= jobs / (restarts + 1), {
      what: 'a good part of the jobs to be dispatched',
      timeoutMs: 60_000,
    });
    await fixture.closeWorkers();
  }
  const made = await producing;
  await eventually(async () => (await left()) === 0, {
    what: 'the queue to be empty',
    timeoutMs: 60_000,
    everyMs: 50,
  });

  const audit = await auditJournal(admin, keys.journal, rules, (id, nth) =>
    loaded.get(`${id} ${nth}`),
  );
  const cuts = proxies.reduce((sum, one) => sum + one.cuts, 0);
  const takenBack = made.reduce((sum, one) => sum + one.takenBack, 0);
  const { wrong, doubled, ...figures } = audit;
  say(`${JSON.stringify(figures)}, ${takenBack} taken back, ${cuts} replies lost`);
  expect(wrong.slice(0, 5)).toEqual([]);
  expect(doubled).toEqual([]);
  expect(audit.fates.left).toBe(0);
  expect(audit.dispatches).toBeGreaterThanOrEqual(2000);
  expect(audit.contested).toBeGreaterThan(audit.dispatches / 2);
  expect(audit.handedBack).toBeGreaterThan(100);
  expect(cuts).toBeGreaterThan(20);
}, 180_000);
