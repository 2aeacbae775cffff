import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { LedgerMirror } from '../../src/adapters/redis/ledger-mirror.ts';
import { loadLedger } from '../../src/adapters/redis/ledger-loader.ts';
import { decideAsItStands } from '../../src/policy/decide.ts';
import type { WaitingJob } from '../../src/policy/job.ts';
import type { LedgerState } from '../../src/policy/ledger.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import type { ClaimedJob, RunResult } from '../../src/ports/job-queue.ts';
import { eventually } from '../support/eventually.ts';
import { aNewJob, queueFixture, type TestWorker } from '../support/queue-fixture.ts';
import { RunGate } from '../support/run-gate.ts';
import { startRedis, type TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let mirrors: LedgerMirror[];
let errors: Error[];
let gate: RunGate;
const soon = { timeoutMs: 15_000 };
const done = { kind: 'completed' } as const;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  mirrors = [];
  errors = [];
  gate = new RunGate();
});
afterEach(async () => {
  gate.open();
  for (const mirror of mirrors) await mirror.stop();
  await fixture.close();
});

/** The same numbers for the same seed, below 1. */
function chances(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

/** A mirror of this test's own. */
async function aMirror(
  onEvent?: ConstructorParameters<typeof LedgerMirror>[0]['onEvent'],
): Promise<LedgerMirror> {
  const blocking = connectRedis(redis.url, 'blocking', () => undefined);
  await whenReady(blocking, 5000);
  const mirror = new LedgerMirror({
    redis: fixture.admin,
    blocking,
    keys: fixture.keys,
    rules: defaultRules,
    ...(onEvent ? { onEvent } : {}),
    onError: (error) => void errors.push(error),
  });
  mirrors.push(mirror);
  await mirror.start();
  return mirror;
}

/** A connection that lets something happen right before and after its first look at what waits. */
function interrupted(happens: () => Promise<unknown>): typeof fixture.admin {
  let isFirst = true;
  return new Proxy(fixture.admin, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      if (name !== 'zscan') {
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      }
      return async (...args: Parameters<typeof target.zscan>) => {
        if (!isFirst) return target.zscan(...args);
        isFirst = false;
        await happens();
        const page = await target.zscan(...args);
        await happens();
        return page;
      };
    },
  });
}

async function headToken(): Promise<string> {
  const [version, epoch] = await fixture.admin.hmget(fixture.keys.journalHead, 'v', 'e');
  return `${version}-${epoch}`;
}

async function caughtUp(mirror: LedgerMirror): Promise<void> {
  await eventually(async () => mirror.token === (await headToken()), {
    ...soon,
    what: 'the mirror to know the whole journal',
  });
}

/** A state with its jobs in one order; a backoff that is over is none. */
function comparable(state: LedgerState): object {
  const plain = ({ eligibleAtMs, ...job }: WaitingJob) =>
    eligibleAtMs ? { ...job, eligibleAtMs } : job;
  return {
    ...state,
    jobs: state.jobs.map(plain).toSorted((a, b) => a.sequence - b.sequence),
    run: state.run && { ...state.run, job: plain(state.run.job) },
    expected: state.expected && { ...state.expected, job: plain(state.expected.job) },
  };
}

async function expectFreshEquals(mirror: LedgerMirror): Promise<void> {
  await caughtUp(mirror);
  const fresh = await loadLedger(fixture.admin, fixture.keys, defaultRules);
  expect(fresh.isRebuilt).toBe(false);
  expect(fresh.place).toEqual({
    version: Number(mirror.token.split('-')[0]),
    epoch: mirror.token.split('-')[1],
  });
  expect(comparable(fresh.ledger.state())).toEqual(comparable(mirror.ledger.state()));
}

/** A job of one of a few members, bands, tiers and models. */
function aRandomJob(chance: () => number) {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(chance() * from.length)]!;
  return aNewJob(pick([-100, -100, 0, 0, 13, 100]), {
    member: pick(['ann', 'bob', 'cat']),
    tier: pick(['free', 'pro', 'max']),
    model: pick(['m', 'n']),
  });
}

/** Runs that end in every way, each after the gate. */
function randomRuns(chance: () => number) {
  return async (job: ClaimedJob): Promise<RunResult> => {
    fixture.around.residentModel = job.facts.model;
    await gate.pass();
    const fate = chance();
    if (fate < 0.25 && job.attemptsMade < 3) {
      const delayMs = fate < 0.15 ? 5 : 60_000;
      return { kind: 'retry', code: 'model_unavailable', message: 'x', delayMs };
    }
    if (fate < 0.35) return { kind: 'failed', code: 'model_unavailable', message: 'x' };
    return done;
  };
}

async function submitAll(...points: number[]): Promise<string[]> {
  const jobs = points.map((value) => aNewJob(value));
  for (const job of jobs) await fixture.queue.submit(job);
  return jobs.map((job) => job.id);
}

async function running(seen: TestWorker, count: number): Promise<void> {
  await eventually(() => seen.dispatched.length >= count && gate.held > 0, {
    ...soon,
    what: `run ${count} to be held at the gate`,
  });
}

async function ran(seen: TestWorker, count: number): Promise<void> {
  await eventually(() => seen.reports.length >= count, { ...soon, what: `${count} runs` });
  await eventually(async () => (await fixture.admin.llen(`${fixture.keys.queue}active`)) === 0, {
    ...soon,
    what: 'the last settlement',
  });
}

describe('a ledger that is read anew', () => {
  test.each([1, 2, 3])(
    'equals the one that followed, in mid-run, with and without a snapshot (seed %i)',
    async (seed) => {
      const chance = chances(seed);
      const mirror = await aMirror();
      const seen = await fixture.startWorker(randomRuns(chance));
      let hasBackoff = false;
      for (let round = 0; round < 8; round += 1) {
        gate.shut();
        const jobs = Array.from({ length: 10 }, () => aRandomJob(chance));
        for (const job of jobs) await fixture.queue.submit(job);
        await running(seen, 1);
        for (const job of jobs) {
          if (chance() < 0.15) await fixture.queue.abandon(job.id, 'cancelled');
        }
        await expectFreshEquals(mirror);
        hasBackoff ||= mirror.ledger.inBackoff > 0;
        expect(mirror.ledger.run).not.toBeNull();
        if (round % 3 === 1) await mirror.save();
        if (round % 3 === 2) await fixture.admin.del(`${fixture.keys.pool}:ledger`);
        const before = seen.reports.length;
        gate.open();
        await eventually(() => seen.reports.length >= before + 7, { ...soon, what: 'seven runs' });
      }
      gate.shut();
      // Whatever was left may have run before the gate was shut.
      await fixture.queue.submit(aRandomJob(chance));
      await running(seen, 1);
      await expectFreshEquals(mirror);
      expect(hasBackoff).toBe(true);
      expect(errors).toEqual([]);
      expect(seen.errors).toEqual([]);
      expect(seen.rebuilds).toEqual([]);
    },
    60_000,
  );

  test('has no lane of a member whose jobs other hands took meanwhile', async () => {
    await submitAll(0, 0);
    const other = aNewJob(0, { member: 'other' });
    await fixture.queue.submit(other);
    const mirror = await aMirror();
    await mirror.save();
    const job = await fixture.queue.queue.getJob(other.id);
    await job?.remove();
    const { ledger } = await loadLedger(fixture.admin, fixture.keys, defaultRules);
    expect([...ledger.bands.get('normal')!.lanes.keys()]).toEqual(['shared']);
  });

  test('knows jobs that arrived while it was read, snapshot or not', async () => {
    const submitLate = async () => fixture.queue.submit(aNewJob(0, { member: 'late' }));
    const first = await loadLedger(interrupted(submitLate), fixture.keys, defaultRules);
    expect([first.ledger.jobs.size, first.isRebuilt]).toEqual([2, false]);
    const mirror = await aMirror();
    const submitAndSave = async () => {
      await submitLate();
      await caughtUp(mirror);
      await mirror.save();
    };
    const second = await loadLedger(interrupted(submitAndSave), fixture.keys, defaultRules);
    expect([second.ledger.jobs.size, second.isRebuilt]).toEqual([4, false]);
  });
});

describe('a restart of the worker', () => {
  test.each([
    ['from its last snapshot', async () => Promise.resolve()],
    ['from a journal alone', async () => fixture.admin.del(`${fixture.keys.pool}:ledger`)],
  ])(
    'in mid-trace changes no pick: %s',
    async (_, spoil) => {
      const chance = chances(7);
      let resident: string | null = null;
      const wrong: string[] = [];
      let dispatches = 0;
      await aMirror((event, ledger) => {
        if (event.kind !== 'dispatch') return;
        dispatches += 1;
        const decision = decideAsItStands(ledger, resident, event.atMs);
        const expected = decision.kind === 'idle' ? 'none' : decision.pick.job.id;
        if (expected !== event.job.id) wrong.push(`${event.job.id} instead of ${expected}`);
        resident = event.job.model;
      });
      const jobs = Array.from({ length: 60 }, () => aRandomJob(chance));
      for (const job of jobs) await fixture.queue.submit(job);
      const runs = randomRuns(chance);
      let seen = await fixture.startWorker(runs);
      for (let restart = 1; restart <= 4; restart += 1) {
        await eventually(() => seen.reports.length >= 10, { ...soon, what: 'ten runs' });
        gate.shut();
        await running(seen, 1);
        await fixture.closeWorkers();
        gate.open();
        await spoil();
        seen = await fixture.startWorker(runs);
        expect(seen.rebuilds).toEqual([]);
      }
      await eventually(
        async () => (await fixture.admin.zcard(`${fixture.keys.queue}prioritized`)) === 0,
        { ...soon, what: 'all runs' },
      );
      expect(dispatches).toBeGreaterThanOrEqual(60);
      expect(wrong).toEqual([]);
    },
    60_000,
  );
});

describe('books that are lost', () => {
  type Spoil = () => Promise<unknown>;
  const key = (name: string) => `${fixture.keys.pool}:${name}`;
  const asText = async (name: string) => {
    await fixture.admin.del(name);
    return fixture.admin.set(name, 'text');
  };
  const asList = async (name: string) => {
    await fixture.admin.del(name);
    return fixture.admin.rpush(name, 'list');
  };
  /** Following a stream that is none is told; nothing else is. */
  const unforeseen = (what: string, errors: readonly Error[]) =>
    what === 'the journal, of another type'
      ? errors.filter(({ message }) => !message.startsWith('WRONGTYPE'))
      : errors;
  const losses: [string, Spoil][] = [
    ['the snapshot', async () => fixture.admin.del(key('ledger'))],
    ['the snapshot, garbled', async () => fixture.admin.set(key('ledger'), '{"format":1,')],
    [
      'the snapshot, of other bands',
      async () => {
        const json = await fixture.admin.get(key('ledger'));
        return fixture.admin.set(key('ledger'), (json ?? '').replace('"batch"', '"other"'));
      },
    ],
    ['the journal', async () => fixture.admin.del(key('journal'))],
    [
      'the end of the journal',
      async () => {
        const last = await fixture.admin.xrevrange(key('journal'), '+', '-', 'COUNT', 2);
        return fixture.admin.xdel(key('journal'), ...last.map(([id]) => id));
      },
    ],
    ['the head', async () => fixture.admin.del(key('journal:head'))],
    ['the head, set back', async () => fixture.admin.hset(key('journal:head'), 'v', '1')],
    ['the head, set forward', async () => fixture.admin.hset(key('journal:head'), 'v', '900')],
    ['the head, of another type', async () => asText(key('journal:head'))],
    ['the journal, of another type', async () => asText(key('journal'))],
    ['the snapshot, of another type', async () => asList(key('ledger'))],
    [
      'the journal, with a foreign entry',
      async () => fixture.admin.xadd(key('journal'), '9000-9', 'k', 'nonsense'),
    ],
    ['the head, garbled', async () => fixture.admin.hset(key('journal:head'), 'v', 'x', 'e', 'y')],
    [
      'all of them',
      async () => {
        return fixture.admin.del(key('ledger'), key('journal'), key('journal:head'));
      },
    ],
  ];

  test.each(losses)('while the worker runs lose no job and no order: %s', async (what, spoil) => {
    gate.shut();
    const first = await submitAll(-100, 0, 100);
    const seen = await fixture.startWorker(async () => {
      await gate.pass();
      return done;
    });
    await running(seen, 1);
    const second = await submitAll(-100, 0, 100, 0);
    await spoil();
    const third = await submitAll(100, -100);
    gate.open();
    await ran(seen, 9);
    const [b1, n1, i1] = first;
    const [b2, n2, i2, n3] = second;
    const [i3, b3] = third;
    expect(seen.dispatched).toEqual([i1, i2, i3, n1, n2, n3, b1, b2, b3]);
    expect(unforeseen(what, seen.errors)).toEqual([]);
    // What its own memory still holds is no loss to a worker that runs.
    expect(seen.rebuilds.length > 0).toBe(/head|all|journal, /.test(what));
  });

  test.each(losses)('while no worker runs lose no job and no order: %s', async (what, spoil) => {
    gate.shut();
    const first = await submitAll(-100, 0, 100, 100);
    const before = await fixture.startWorker(async (_, __, signal) => {
      await Promise.race([
        gate.pass(),
        new Promise((resolve) => signal.addEventListener('abort', resolve)),
      ]);
      return { kind: 'handed-back' };
    });
    await running(before, 1);
    const second = await submitAll(-100, 0);
    await fixture.closeWorkers();
    gate.open();
    const third = await submitAll(100, 0);
    await spoil();
    const seen = await fixture.startWorker(async () => Promise.resolve(done));
    await ran(seen, 8);
    const [b1, n1, i1, i2] = first;
    const [b2, n2] = second;
    const [i3, n3] = third;
    expect(seen.dispatched).toEqual([i1, i2, i3, n1, n2, n3, b1, b2]);
    expect(unforeseen(what, seen.errors)).toEqual([]);
    // Without a snapshot the whole journal is read, if it is there from its beginning.
    const isEnough = ['the snapshot', 'the snapshot, of another type'].includes(what);
    expect(seen.rebuilds[0]).toBe(isEnough ? undefined : 8);
  });

  test('are told when a journal that went on is gone for one who follows', async () => {
    await submitAll(0);
    const mirror = await aMirror();
    await fixture.admin.del(key('journal:head'));
    await submitAll(0, 0);
    await mirror.check();
    expect(mirror.ledger.jobs.size).toBe(3);
    await caughtUp(mirror);
  });
});
