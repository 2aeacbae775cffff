import { describe, expect, test } from '@jest/globals';
import { explanationText } from '../../src/gateway/explanation-text.ts';
import { explain } from '../../src/gateway/explanation.ts';
import type { Explanation } from '../../src/gateway/explanation.ts';
import { newRecord } from '../../src/gateway/job-object.ts';
import type { QueueView, ShownJob, ShownRun, ShownWait } from '../../src/gateway/queue-view.ts';
import { openApiDocument } from '../../src/ingress/api/open-api-document.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import type { DispatchRecord, EndRecord } from '../../src/ports/dispatch-log.ts';
import type { JobFacts } from '../../src/ports/job-queue.ts';
import type { JobRecord } from '../../src/ports/job-records.ts';
import { aDispatchRecord, anEndRecord } from '../support/dispatch-records.ts';
import { DocumentCheck } from '../support/open-api.ts';

const MINE = '0b5f5a3e-6d0e-4f0e-9f4b-0d6c3f6f1d77';
const SHOT = '4f1c2f0e-5a39-4d0b-8f0e-3c7f0a0d6b11';
const facts: JobFacts = {
  ...{ version: 1, method: 'POST', route: '/v1/images/generations', kind: 'image' },
  ...{ model: 'flux', stream: false, member: 'ann', tier: 'free', base: 0, band: 'normal' },
  ...{ mode: 'async', bodyBytes: 1, bodySha256: '0' },
};
const record = newRecord(facts, { jobId: MINE, arrival: 1, nowMs: 10_000, isNew: true });
const check = new DocumentCheck(
  JSON.parse(JSON.stringify(openApiDocument({ bands: Object.keys(defaultRules.bands) }))),
);

const shownJob: ShownJob = {
  ...{ id: MINE, member: 'ann', model: 'flux', tier: 'free', band: 'normal', base_priority: 0 },
};
const range = (p50: number): { p50: number; p90: number } => ({ p50, p90: 2 * p50 });
const waits = (position: number, change: Partial<ShownWait> = {}): ShownWait => ({
  ...shownJob,
  state: 'waiting',
  position,
  score: { band: 0, tier: 0, affinity: 0, aging: 0.5, effective: 0.5 },
  turn_seconds: 10,
  waited_seconds: 30,
  in_backoff: false,
  starts_in_seconds: range(10 * position),
  eta_seconds: range(10 * position + 5),
  ...change,
});
const runs: ShownRun = {
  ...{ ...shownJob, id: SHOT, member: 'bob', band: 'batch', base_priority: -100 },
  ...{ state: 'running', started_at: 9, running_seconds: 3, eta_seconds: range(7) },
};
const plan = (waiting: readonly ShownWait[], running: ShownRun | null = null): QueueView => ({
  ...{ as_of: 12, version: '1-1', resident_model: 'sdxl', running },
  ...{ waiting_total: waiting.length, waiting },
});

interface World {
  readonly plan?: QueueView;
  readonly records?: readonly (DispatchRecord | EndRecord)[];
  readonly nowMs?: number;
  readonly scope?: string | null;
}

/** Explains a job; the answer has to be as the document has it. */
async function explained(job: JobRecord, world: World = {}): Promise<Explanation> {
  const explanation = await explain(job, world.scope === undefined ? 'ann' : world.scope, {
    rules: defaultRules,
    plan: async () => Promise.resolve(world.plan),
    history: {
      since: async () => Promise.resolve(0),
      async *between() {
        yield await Promise.resolve(world.records ?? []);
      },
    },
    nowMs: async () => Promise.resolve(world.nowMs ?? 12_000),
  });
  expect(check.faults('Explanation', JSON.parse(JSON.stringify(explanation)))).toEqual([]);
  return explanation;
}

describe('a waiting job', () => {
  const others = [
    waits(1, { id: SHOT, member: 'bob', band: 'interactive', base_priority: 100 }),
    waits(2, { id: SHOT, member: 'bob', band: 'batch', base_priority: -100 }),
    waits(3, { id: SHOT, member: 'bob', turn_seconds: 0 }),
    waits(4, { id: SHOT, member: 'cid', turn_seconds: 12, tier: 'pro' }),
    waits(5, { id: SHOT, member: 'cid', turn_seconds: 12, model: 'sdxl' }),
    waits(6, { id: SHOT, member: 'ann', base_priority: 1 }),
    waits(7, { id: SHOT, member: 'ann' }),
    waits(8),
    waits(9, { id: SHOT, member: 'bob' }),
  ];

  test('is told who is ahead, and the first term that puts each there', async () => {
    const { ahead, ahead_total, position, eta } = await explained(record, {
      plan: plan(others, runs),
    });
    expect([ahead_total, position, eta]).toEqual([8, 8, range(85)]);
    expect(ahead.map(({ because }) => because)).toEqual([
      'running',
      'higher_band',
      'aged_band',
      'fair_turn',
      'tier',
      'affinity',
      'base',
      'earlier',
    ]);
    expect(ahead[0]?.seconds).toBe(7);
    expect(ahead[1]?.seconds).toBe(5);
  });

  test("does not see others' ids; an administrator does", async () => {
    const seen = await explained(record, { plan: plan(others, runs) });
    expect(seen.ahead.map(({ job }) => job)).toEqual([
      ...Array<string>(6).fill("another member's job"),
      SHOT,
      SHOT,
    ]);
    expect(JSON.stringify(seen)).not.toContain('bob');
    const all = await explained(record, { plan: plan(others, runs), scope: null });
    expect(all.ahead.map(({ job }) => job)).toEqual(Array<string>(8).fill(SHOT));
  });

  test('behind more than a hundred is told of the hundred that go first, and how many there are', async () => {
    const many = Array.from({ length: 300 }, (_, at) =>
      waits(at + 1, at === 249 ? {} : { id: SHOT, member: 'bob', turn_seconds: 0 }),
    );
    const { ahead, ahead_total, summary } = await explained(record, { plan: plan(many, runs) });
    expect([ahead.length, ahead_total]).toEqual([101, 250]);
    expect(summary).toContain(
      "It is number 250, 250 ahead: 1 runs, 100 by other members' turns, 149 more.",
    );
  });

  test('has its terms and its clock', async () => {
    const own = { score: { band: 0, tier: 0, affinity: 0, aging: 0.25, effective: 0.25 } };
    const { score, clock } = await explained(record, { plan: plan([waits(1, own)]) });
    expect(score).toEqual(own.score);
    expect(clock).toEqual({
      ...{ band_seconds: 15, turn_seconds: 10, waited_seconds: 30, because: 'band_served' },
    });
    const fresh = await explained(record, { plan: plan([waits(1)]) });
    expect(fresh.clock?.because).toBe('arrival');
  });

  test('has a wait that lasts until now', async () => {
    const records = [aDispatchRecord(SHOT, { member: 'bob' })];
    const { wait_seconds, timeline, totals, summary } = await explained(record, {
      plan: plan([waits(1)], runs),
      records,
      nowMs: 95_000,
    });
    expect(wait_seconds).toBe(85);
    expect(timeline).toEqual([{ from: 10, to: 95, seconds: 85, because: 'running', runs: 1 }]);
    expect(totals).toEqual({ running: 85 });
    expect(summary).toBe(
      'It has waited 1 min 25 s: 1 min 25 s behind the job that ran when it came. It is number 1, 1 ahead: 1 runs. ' +
        'Done in 15 s to 30 s if no better job comes.',
    );
  });

  test('that no plan names yet has no place and no terms', async () => {
    for (const view of [undefined, plan([], runs)]) {
      const told = await explained(record, view === undefined ? {} : { plan: view });
      expect(told).toMatchObject({
        position: null,
        score: null,
        clock: null,
        ahead: [],
        eta: null,
      });
      expect(told.wait_seconds).toBe(2);
    }
  });

  test('of a paused film waits for its resumption', async () => {
    const parked: JobRecord = {
      ...record,
      absences: [{ why: 'paused', fromMs: 11_000, toMs: null }],
    };
    const { totals } = await explained(parked, { nowMs: 60_000 });
    expect(totals).toEqual({ dispatch: 1, paused: 49 });
  });

  test('is not older than Redis says it is', async () => {
    expect((await explained(record, { nowMs: 9000 })).wait_seconds).toBe(0);
  });
});

describe('a job that has run', () => {
  const done: JobRecord = { ...record, state: 'completed', startedMs: 70_000, endedMs: 90_000 };
  const own: DispatchRecord = {
    ...aDispatchRecord(MINE, {
      member: 'ann',
      arrivalMs: 10_000,
      score: { band: 0, tier: 0, affinity: 10, aging: 0.123456, effective: 10.123456 },
    }),
    atMs: 70_000,
    turnMs: 1500,
  };
  const records = [
    { ...aDispatchRecord(SHOT, { member: 'bob' }), atMs: 10_001 },
    anEndRecord(SHOT, { atMs: 69_990, loadMs: 20_000 }),
    own,
    anEndRecord(MINE, { atMs: 90_000 }),
  ];

  test('is told what its wait was made of, and the terms it went with', async () => {
    const told = await explained(done, { records, nowMs: 200_000, plan: plan([waits(1)]) });
    expect(told).toMatchObject({ state: 'completed', position: null, ahead: [], ahead_total: 0 });
    expect(told.wait_seconds).toBe(60);
    expect(told.totals).toEqual({ swap: 20, fair_turn: 39.99, dispatch: 0.01 });
    expect(told.score).toEqual({ band: 0, tier: 0, affinity: 10, aging: 0.123, effective: 10.123 });
    expect(told.clock).toEqual({
      ...{ band_seconds: 7.407, turn_seconds: 1.5, waited_seconds: 60, because: 'band_served' },
    });
    expect(told.summary).toBe(
      "It waited 1 min: 40 s behind other members' turns, 20 s while models were loaded for jobs ahead.",
    );
  });

  test('while it runs is told the same', async () => {
    const running: JobRecord = { ...done, state: 'running', endedMs: null };
    expect((await explained(running, { records })).totals).toEqual({
      ...{ swap: 20, fair_turn: 39.99, dispatch: 0.01 },
    });
  });

  test('that ended without a dispatch waited until its end', async () => {
    const evicted: JobRecord = { ...record, state: 'evicted', endedMs: 40_000 };
    const { wait_seconds, score } = await explained(evicted, { records: records.slice(0, 2) });
    expect([wait_seconds, score]).toEqual([30, null]);
  });
});

test('a wait of nothing is told without reasons', () => {
  const text = explanationText({
    ...{ state: 'completed', position: null, eta: null, ahead: [], ahead_total: 0 },
    ...{ wait_seconds: 0.004, totals: { dispatch: 0.004 } },
  });
  expect(text).toBe('It waited 0 s.');
});

test('the next one is told that nobody is ahead', () => {
  const text = explanationText({
    ...{ state: 'waiting', position: 1, eta: null, ahead: [], ahead_total: 0 },
    ...{ wait_seconds: 3, totals: { recovery: 3 } },
  });
  expect(text).toBe(
    'It has waited 3 s: 3 s for an attempt of its own that was repeated, or because nothing ran. It is number 1, ' +
      'nobody is ahead.',
  );
});
