import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { Queue } from 'bullmq';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { reconcile } from '../../src/adapters/redis/journal-reconciler.ts';
import { LedgerMirror } from '../../src/adapters/redis/ledger-mirror.ts';
import { PoolStatus } from '../../src/adapters/redis/pool-status.ts';
import { QueueCare } from '../../src/adapters/redis/queue-care.ts';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';
import { readRedisHealth } from '../../src/adapters/redis/redis-health.ts';
import { Scripts } from '../../src/adapters/redis/scripts.ts';
import { createTelemetry } from '../../src/adapters/telemetry/telemetry.ts';
import { loadConfig } from '../../src/config/load.ts';
import { PlanKeeper } from '../../src/gateway/plan-keeper.ts';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { createScorerDuties } from '../../src/gateway/scorer-duties.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

const soon = { timeoutMs: 8000 };

let server: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let scorer: Awaited<ReturnType<typeof aScorer>>;
let bull: Queue;

beforeAll(async () => {
  server = await startRedis();
});
afterAll(async () => server.stop());
beforeEach(async () => {
  fixture = await queueFixture(server.url);
  bull = new Queue('gpu', { connection: fixture.admin, prefix: fixture.keys.pool });
  scorer = await aScorer();
});
afterEach(async () => {
  await scorer.stop();
  await bull.close();
  await fixture.close();
});

/** The scorer as its process wires it, its passes made by hand. */
async function aScorer() {
  const { keys, store } = fixture;
  const redis = connectRedis(server.url, 'patient', () => undefined);
  const errors: Error[] = [];
  const status = new PoolStatus(redis, keys);
  const scripts = new Scripts(redis);
  const telemetry = createTelemetry({
    process: 'scorer',
    config: loadConfig({ LOG_LEVEL: 'silent' }),
  });
  const mirror: LedgerMirror = new LedgerMirror({
    redis,
    blocking: connectRedis(server.url, 'blocking', () => undefined),
    keys,
    rules: defaultRules,
    onError: (error) => void errors.push(error),
  });
  const keeper = new PlanKeeper({
    ledger: () => mirror.ledger,
    version: () => mirror.token,
    residentModel: async () => status.resident(),
    duration: (_job, cold) => ({ p50Ms: cold ? 40_000 : 10_000, p90Ms: cold ? 60_000 : 20_000 }),
    nowMs: async () => status.nowMs(),
    publish: async (view) => status.publishPlan(JSON.stringify(view)),
    telemetry,
    onError: (error) => void errors.push(error),
  });
  await mirror.start();
  const duties = createScorerDuties({
    films: async () => Promise.resolve(),
    graceMs: 60_000,
    care: new QueueCare(redis, keys, new RedisClock()),
    reconcile: async () => {
      await mirror.check();
      return reconcile({ redis, scripts, keys }, mirror.ledger);
    },
    plan: async () => keeper.plan(),
    store,
    telemetry,
    memory: () => readRedisHealth(redis),
    admitBelowFraction: 0.7,
  });
  return {
    status,
    mirror,
    errors,
    pass: duties.pass,
    stop: async () => {
      keeper.stop();
      telemetry.close();
      await mirror.stop();
      redis.disconnect();
    },
  };
}

/** Submits a job; resolves when the scorer knows of it. */
async function submit(facts: Parameters<typeof aNewJob>[1], points = 0): Promise<string> {
  const job = aNewJob(points, facts);
  await fixture.queue.submit(job);
  await known(job.id);
  return job.id;
}

const known = async (id: string): Promise<unknown> =>
  eventually(() => [...scorer.mirror.ledger.jobs.keys()].some((key) => key === id), {
    ...soon,
    what: `the scorer to know job ${id}`,
  });

const bullOrder = async (): Promise<string[]> =>
  fixture.admin.zrange(`${fixture.keys.queue}prioritized`, '0', '-1');

async function plan(): Promise<QueueView> {
  return JSON.parse((await scorer.status.plan()) ?? 'null') as QueueView;
}

const planOrder = async (): Promise<(string | null)[]> =>
  (await plan()).waiting.map(({ id }) => id);

/** Three members, three bands, three models. */
async function mixed(): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < 30; index += 1) {
    const points = [-100, 0, 100, 40, -97][index % 5] ?? 0;
    ids.push(
      await submit(
        {
          member: ['ann', 'bob', 'mort'][index % 3] ?? '',
          tier: ['free', 'pro', 'max'][(index + 1) % 3] ?? '',
          model: ['m', 'n', 'o'][(index % 7) % 3] ?? '',
        },
        points,
      ),
    );
  }
  return ids;
}

describe('after a pass', () => {
  test('BullMQ’s order is the plan’s, for any mix of members, bands, tiers and models', async () => {
    await scorer.status.publishResident('n');
    const ids = await mixed();
    const before = await bullOrder();
    await scorer.pass();
    const order = await planOrder();
    expect(order).toHaveLength(ids.length);
    expect(new Set(order)).toEqual(new Set(ids));
    expect(await bullOrder()).toEqual(order);
    expect(order).not.toEqual(before);
    expect(scorer.errors).toEqual([]);
  });

  test('a second pass finds nothing to write', async () => {
    await mixed();
    await scorer.pass();
    const scores = async () =>
      fixture.admin.zrange(`${fixture.keys.queue}prioritized`, '0', '-1', 'WITHSCORES');
    const before = await scores();
    await scorer.pass();
    expect(await scores()).toEqual(before);
  });

  test('each job’s number is its class, and the board shows its place and terms', async () => {
    await mixed();
    await scorer.pass();
    const { waiting } = await plan();
    for (const [index, { id, score, turn_seconds, eta_seconds }] of waiting.entries()) {
      const job = await bull.getJob(String(id));
      const set = `${fixture.keys.queue}prioritized`;
      const cls = Math.floor(Number(await fixture.admin.zscore(set, String(id))) / 2 ** 32);
      const hash = await fixture.admin.hgetall(`${fixture.keys.queue}${String(id)}`);
      expect(Number(hash.cls)).toBe(cls);
      expect(Number(hash.priority)).toBe(cls);
      expect(job?.priority).toBe(cls);
      expect(cls).toBeGreaterThanOrEqual(2);
      expect(job?.progress).toEqual({ position: index + 1, score, turn_seconds, eta_seconds });
    }
  });

  test('a priority that other hands gave is undone', async () => {
    await mixed();
    await scorer.pass();
    const order = await bullOrder();
    const last = await bull.getJob(order.at(-1) ?? '');
    await last?.changePriority({ priority: 1 });
    const third = await bull.getJob(order[2] ?? '');
    await third?.changePriority({ priority: 2_000_000 });
    expect(await bullOrder()).not.toEqual(order);
    await scorer.pass();
    expect(await bullOrder()).toEqual(order);
    expect(await planOrder()).toEqual(order);
    expect((await bull.getJob(last?.id ?? ''))?.priority).toBeGreaterThan(1);
  });

  test('another resident model shows in the order', async () => {
    const ids: string[] = [];
    for (const model of ['m', 'n', 'm', 'n']) ids.push(await submit({ model, member: 'ann' }));
    await scorer.status.publishResident('m');
    await scorer.pass();
    expect(await bullOrder()).toEqual([ids[0], ids[2], ids[1], ids[3]]);
    await scorer.status.publishResident('n');
    await scorer.pass();
    expect(await bullOrder()).toEqual([ids[1], ids[3], ids[0], ids[2]]);
    expect((await plan()).resident_model).toBe('n');
    expect((await plan()).waiting.map(({ score }) => score.affinity)).toEqual([10, 10, 0, 0]);
  });

  test('a job that BullMQ’s own hands removed is gone from plan and Redis, without a ghost', async () => {
    const ids = await mixed();
    await scorer.pass();
    const [first = '', second = ''] = await bullOrder();
    await bull.remove(first);
    await fixture.queue.abandon(second, 'client_closed');
    // The first pass tells the journal, the scorer hears of it, the next pass has it in the plan.
    await scorer.pass();
    await eventually(() => scorer.mirror.ledger.jobs.size === ids.length - 2, {
      ...soon,
      what: 'the scorer to know of the removals',
    });
    await scorer.pass();
    expect(await planOrder()).toEqual(await bullOrder());
    for (const id of [first, second]) {
      expect(await fixture.admin.exists(`${fixture.keys.queue}${id}`)).toBe(0);
      expect(await planOrder()).not.toContain(id);
    }
  });
});

describe('numbers and terms', () => {
  test('are not written to a job that is removed or dispatched meanwhile', async () => {
    const id = await submit({});
    const care = new QueueCare(fixture.admin, fixture.keys, new RedisClock());
    await fixture.queue.abandon(id, 'client_closed');
    await care.show([{ id, json: '{"position":1}' }]);
    await new Scripts(fixture.admin).run(
      'renumber',
      fixture.keys.pool,
      JSON.stringify({ pool: fixture.keys.pool, queue: fixture.keys.queue }),
      ...[id, 5, 5],
    );
    expect(await fixture.admin.exists(`${fixture.keys.queue}${id}`)).toBe(0);
    expect(await bullOrder()).toEqual([]);
  });
});

describe('dispatch', () => {
  test('goes by the policy with the scorer dead, whatever the numbers say', async () => {
    await mixed();
    fixture.around.residentModel = 'm';
    await scorer.status.publishResident('m');
    await scorer.pass();
    const order = await bullOrder();
    await scorer.stop();
    // A job for another model came last and belongs first; the old numbers stay as they are.
    const late = aNewJob(300, { member: 'late', model: 'm' });
    await fixture.queue.submit(late);
    const last = await bull.getJob(order.at(-1) ?? '');
    await last?.changePriority({ priority: 1 });
    const seen = await fixture.startWorker(async () => Promise.resolve({ kind: 'completed' }));
    await eventually(() => seen.reports.length === order.length + 1, {
      ...soon,
      what: 'all of them to run',
    });
    expect(seen.dispatched[0]).toBe(late.id);
    expect(seen.dispatched.indexOf(order.at(-1) ?? '')).toBeGreaterThan(order.length / 2);
    const bands = seen.claims.slice(1).map(({ facts }) => facts.band);
    expect(bands).toEqual(bands.toSorted((a, b) => rank(b) - rank(a)));
    expect(seen.errors).toEqual([]);
  });
});

const rank = (band: string): number => defaultRules.bands[band] ?? NaN;
