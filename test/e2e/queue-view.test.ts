import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import type { DispatchRecord, EndRecord } from '../../src/ports/dispatch-log.ts';
import { BerthSystem, startBerthProcess } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { Gate, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { keyedConfig, secretOf } from '../support/keyed-config.ts';
import type { KeyedConfig, TestKey } from '../support/keyed-config.ts';
import { chat } from '../support/requests.ts';

const KEYS: readonly TestKey[] = [
  { name: 'ann', tier: 'pro' },
  { name: 'bob' },
  { name: 'root', admin: true },
];
/** Loads slow enough for the model server's events to tell of them while the job runs. */
const LOAD_MS = 300;
const soon = { timeoutMs: 15_000, everyMs: 50 };

let demo: ScriptedModelServer;
let config: KeyedConfig;
let system: BerthSystem;
let redis: ReturnType<typeof connectRedis>;
const gates: Gate[] = [];

beforeAll(async () => {
  demo = await startDemoModelServer({ coldLoadMs: LOAD_MS });
  config = keyedConfig(KEYS);
  system = await BerthSystem.start({
    modelServerUrl: demo.url,
    env: { BERTH_CONFIG: config.file },
  });
  redis = connectRedis(system.redis.url, 'patient', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await system.stop();
  await demo.close();
  config.remove();
});
afterEach(() => {
  for (const gate of gates.splice(0)) gate.release();
});

const bearer = (name: string) => ({ authorization: `Bearer ${secretOf(name)}` });

async function get(path: string, name = 'root', url = system.url): Promise<Response> {
  return fetch(url + path, { headers: bearer(name) });
}

async function view(name = 'root'): Promise<QueueView> {
  return (await (await get('/berth/queue', name)).json()) as QueueView;
}

async function viewWith(waiting: number): Promise<QueueView> {
  return eventually(
    async () => {
      const seen = await view();
      return seen.running !== null && seen.waiting.length === waiting ? seen : null;
    },
    { ...soon, what: `a plan of ${waiting} behind the running job` },
  );
}

/** The value of a series summed over what is not asked for. */
async function metric(name: string, labels: Record<string, string> = {}): Promise<number> {
  const text = await (await get('/berth/metrics')).text();
  const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`));
  return lines
    .filter((line) =>
      Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`)),
    )
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}

async function records(): Promise<(DispatchRecord | EndRecord)[]> {
  const entries = await redis.xrange('{berth}:gpu:dispatches', '-', '+');
  return entries.map(([, [, json]]) => JSON.parse(json ?? '') as DispatchRecord | EndRecord);
}

interface Sent {
  readonly id: Promise<string>;
  readonly answer: Promise<Response>;
}

function send(name: string, text: string, headers: Record<string, string>, model: string): Sent {
  const request = chat(text, { model });
  const answer = fetch(`${system.url}/v1/chat/completions`, {
    ...request,
    headers: { 'content-type': 'application/json', ...bearer(name), ...headers },
  });
  const id = answer.then((response) => response.headers.get('x-berth-job-id') ?? '');
  return { id, answer };
}

/** One of ann's runs; behind it wait a chat of bob's, a shot of ann's for another model, and one of bob's that is warm. */
async function scene(): Promise<{ all: Sent[]; gate: Gate; seen: QueueView; masked: QueueView }> {
  const gate = demo.hold();
  gates.push(gate);
  const all = [send('ann', 'running', {}, 'demo-chat-small')];
  await gate.arrived;
  const waiting: [string, string, Record<string, string>, string][] = [
    ['ann', 'shot', { 'x-berth-intent': 'film-shot' }, 'demo-chat-large'],
    ['bob', 'warm shot', { 'x-berth-intent': 'film-shot' }, 'demo-chat-small'],
    ['bob', 'talk', { 'x-berth-intent': 'chat' }, 'demo-chat-small'],
  ];
  for (const [index, parts] of waiting.entries()) {
    all.push(send(...parts));
    await viewWith(index + 1);
  }
  const seen = await viewWith(3);
  return { all, gate, seen, masked: await view('ann') };
}

describe('the queue', () => {
  test('shows the running job, the plan behind it, and of others only that they are there', async () => {
    const before = await metric('berth_eta_error_seconds_count');
    const swapsBefore = await metric('berth_swaps_total');
    const { all, gate, seen, masked } = await scene();
    expect(seen.running).toMatchObject({
      state: 'running',
      member: 'ann',
      tier: 'pro',
      band: 'normal',
      base_priority: 0,
      model: 'demo-chat-small',
    });
    expect(seen.running?.started_at).toBeGreaterThan(1e9);
    expect(seen.running?.running_seconds).toBeGreaterThanOrEqual(0);
    expect(seen.resident_model).toBe('demo-chat-small');
    expect(seen.version).toMatch(/^\d+-/);
    expect(seen.waiting.map(({ position, member, band }) => [position, member, band])).toEqual([
      [1, 'bob', 'interactive'],
      [2, 'bob', 'batch'],
      [3, 'ann', 'batch'],
    ]);
    const [talk, warm, shot] = seen.waiting;
    expect(talk).toMatchObject({ state: 'waiting', in_backoff: false, turn_seconds: 0 });
    expect(warm?.score).toMatchObject({ band: -100, tier: 0, affinity: 10 });
    expect(shot?.score).toMatchObject({ band: -100, tier: 1, affinity: 0 });
    for (const { score } of seen.waiting)
      expect(score.effective).toBeCloseTo(
        score.band + score.tier + score.affinity + score.aging,
        2,
      );
    for (const job of seen.waiting) {
      expect(job.starts_in_seconds.p50).toBeLessThanOrEqual(job.starts_in_seconds.p90);
      expect(job.eta_seconds.p50).toBeGreaterThanOrEqual(job.starts_in_seconds.p50);
      expect(job.waited_seconds).toBeGreaterThanOrEqual(0);
    }
    expect(warm?.eta_seconds.p50).toBeGreaterThan(talk?.eta_seconds.p50 ?? NaN);

    expect(masked.running?.member).toBe('ann');
    expect(masked.waiting.map(({ id, member, model }) => [id !== null, member, model])).toEqual([
      [false, null, null],
      [false, null, null],
      [true, 'ann', 'demo-chat-large'],
    ]);
    expect(masked.waiting.map(({ position, band }) => [position, band])).toEqual([
      [1, 'interactive'],
      [2, 'batch'],
      [3, 'batch'],
    ]);
    expect(JSON.stringify(masked)).not.toContain('bob');

    gate.release();
    const ids = await Promise.all(all.map(async ({ id }) => id));
    expect(masked.running?.id).toBe(ids[0]);
    expect(seen.waiting.map(({ id }) => id)).toEqual([ids[3], ids[2], ids[1]]);
    for (const { answer } of all) expect((await answer).status).toBe(200);

    await eventually(async () => (await metric('berth_swaps_total')) > swapsBefore, {
      ...soon,
      what: 'the swap to be counted',
    });
    await eventually(async () => (await metric('berth_eta_error_seconds_count')) >= before + 3, {
      ...soon,
      what: 'three ETAs to be compared',
    });
    const isIdle = async () => {
      const { running, waiting } = await view();
      return running === null && waiting.length === 0;
    };
    await eventually(isIdle, { ...soon, what: 'the queue to be empty and the GPU idle' });
  });

  test('is for those with a key, and is never kept by a cache', async () => {
    expect((await fetch(`${system.url}/berth/queue`)).status).toBe(401);
    const response = await get('/berth/queue', 'bob');
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  });
});

describe('what decided', () => {
  test('is in the record of each dispatch and in the metrics', async () => {
    const changed = { term: 'affinity', band: 'batch' };
    const from = (await records()).length;
    const { all, gate } = await scene();
    gate.release();
    const [, shot, warm, talk] = await Promise.all(all.map(async ({ id }) => id));
    const ended = await eventually(
      async () => {
        const news = (await records()).slice(from);
        return news.filter(({ kind }) => kind === 'end').length === 4 ? news : null;
      },
      { ...soon, what: 'four runs on record' },
    );
    const dispatched = ended.filter((record) => record.kind === 'dispatch');
    expect(dispatched.map(({ winner }) => winner.id).slice(1)).toEqual([talk, warm, shot]);
    expect(dispatched[1]).toMatchObject({
      winner: { member: 'bob', tier: 'free', base: 100, model: 'demo-chat-small' },
      losers: { batch: { score: { band: -100 } } },
      waiting: { interactive: 0, normal: 0, batch: 2 },
      residentModel: 'demo-chat-small',
      isSwap: false,
    });
    expect(dispatched[2]).toMatchObject({
      winner: { id: warm, score: { affinity: 10 } },
      losers: { batch: { id: shot } },
      displaced: { affinity: shot },
      waiting: { batch: 1 },
    });
    expect(dispatched[3]).toMatchObject({ isSwap: true, losers: {}, waiting: { batch: 0 } });
    const end = ended.find((record) => record.kind === 'end' && record.id === shot);
    expect(end).toMatchObject({ kind: 'end' });
    if (end?.kind !== 'end') throw new Error('the shot has no end');
    expect(end.usedMs).toBeGreaterThanOrEqual(LOAD_MS);
    expect(end.loadMs).toBeGreaterThan(LOAD_MS / 3);
    expect(end.loadMs).toBeLessThanOrEqual(end.usedMs);

    // Metrics are told late: those of an earlier scene may still be on their way. What is on record is complete.
    const swayed = (await records()).filter(
      (record) => record.kind === 'dispatch' && record.displaced.affinity !== undefined,
    );
    const swayers = new Set(
      swayed.map((record) => (record.kind === 'dispatch' ? record.winner.id : '')),
    );
    const usedMs = (await records())
      .filter((record) => record.kind === 'end' && swayers.has(record.id))
      .reduce((sum, record) => sum + (record.kind === 'end' ? record.usedMs : 0), 0);
    expect(usedMs).toBeGreaterThan(0);
    await eventually(
      async () => (await metric('berth_order_changed_total', changed)) === swayed.length,
      { ...soon, what: 'the term to be counted' },
    );
    expect(await metric('berth_order_delay_seconds_total', changed)).toBeCloseTo(usedMs / 1000, 6);
  });
});

describe('an ingress that was started with another policy', () => {
  test('is not ready and says why; so does the metric', async () => {
    const other = keyedConfig(KEYS, { affinity: { bonus: 5 } });
    const second = startBerthProcess('ingress', {
      ...system.env(),
      PORT: '0',
      BERTH_CONFIG: other.file,
    });
    try {
      const url = `http://127.0.0.1:${await second.port}`;
      const checks = await eventually(
        async () => {
          const response = await get('/berth/readyz', 'root', url);
          const body = (await response.json()) as { checks: { name: string; ok: boolean }[] };
          const bad = body.checks.filter(({ ok }) => !ok);
          return response.status === 503 && bad.length === 1 ? bad : null;
        },
        { ...soon, what: 'one bad check' },
      );
      expect(checks).toEqual([
        { name: 'policy', ok: false, detail: expect.stringContaining('another policy') },
      ]);
      const text = await (await get('/berth/metrics', 'root', url)).text();
      expect(text).toMatch(/^berth_policy_mismatch\{[^}]*\} 1$/m);
      expect(second.output()).toMatch(/"differs":true,.*"msg":"policy.compared"/);
      expect((await get('/berth/readyz')).status).toBe(200);
    } finally {
      await second.kill();
      other.remove();
    }
  });
});
