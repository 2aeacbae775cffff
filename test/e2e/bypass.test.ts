import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { demoModels } from '../../src/demo-model-server/catalogue.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { Gate, RequestRecord, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat } from '../support/requests.ts';

const WAITING = 1000;
const BATCH = 50;
const CONCURRENCY = 2;

let demo: ScriptedModelServer;
let system: BerthSystem;
let gate: Gate;
let leave: AbortController;
let waiting: Promise<PromiseSettledResult<Response>[]>;

beforeAll(async () => {
  const models = demoModels.map((model) =>
    model.id === 'demo-embed' ? { ...model, aliases: ['demo-embed-alias'], isApart: true } : model,
  );
  demo = await startDemoModelServer({ models });
  system = await BerthSystem.start({
    modelServerUrl: demo.url,
    env: { BERTH_CONFIG: new URL('../support/bypass.config.json', import.meta.url).pathname },
  });
  // One job holds the GPU and a thousand wait, throughout.
  gate = demo.hold();
  leave = new AbortController();
  const ask = (text: string) => fetch(target(), { ...chat(text), signal: leave.signal });
  const running = ask('holds the GPU');
  running.catch(() => undefined);
  await gate.arrived;
  const asked = [running];
  waiting = running.then(
    async () => Promise.allSettled(asked),
    async () => Promise.allSettled(asked),
  );
  for (let from = 0; from < WAITING; from += BATCH) {
    // Not all at once: how an ingress stands a burst is not what is tested here.
    for (let at = from; at < from + BATCH; at += 1) {
      const waits = ask(`waits ${at}`);
      waits.catch(() => undefined);
      asked.push(waits);
    }
    await reached('berth_admissions_total', from + BATCH + 1);
  }
  await reached('berth_queue_depth', WAITING);
}, 90_000);

afterAll(async () => {
  leave.abort();
  gate.release();
  await waiting;
  await system.stop();
  await demo.close();
});

let gates: Gate[] = [];
afterEach(() => {
  for (const each of gates) each.release();
  gates = [];
});

const target = (path = '/v1/chat/completions') => system.url + path;
const embedding = (model: string) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ model, input: 'x' }),
});
const isOf = (model: string) => (request: RequestRecord) => request.model === model;

/** The sum of a metric over its labels. */
async function total(metric: string): Promise<number> {
  const text = await (await fetch(`${system.url}/berth/metrics`)).text();
  const counts = [...text.matchAll(new RegExp(`^${metric}\\{[^}]*\\} (\\d+)$`, 'gm'))];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

async function reached(metric: string, wanted: number): Promise<void> {
  const look = async (): Promise<boolean> => {
    const seen = await total(metric);
    if (seen !== wanted) throw new Error(`it is ${seen}`);
    return true;
  };
  await eventually(look, { what: `${metric} to be ${wanted}`, timeoutMs: 30_000, everyMs: 50 });
}

function holdAll(model: string): { arrived: () => number } {
  const from = demo.record.length;
  gates.push(demo.hold(isOf(model), Infinity));
  return { arrived: () => demo.record.slice(from).filter(isOf(model)).length };
}

describe('while one job holds the GPU and a thousand wait', () => {
  test.each([
    ["a peer's model", chat('x', { model: 'demo-peer/remote-chat' }), '/v1/chat/completions'],
    ["a peer's model by its bare id", embedding('remote-embed'), '/v1/embeddings'],
    [
      'a configured model, here by the id behind its alias',
      embedding('demo-embed'),
      '/v1/embeddings',
    ],
    ['a configured model by its alias', embedding('demo-embed-alias'), '/v1/embeddings'],
    ['a peer below /upstream', embedding('ignored'), '/upstream/remote-embed/v1/embeddings'],
  ])('%s answers at once and is no job', async (_what, request, path) => {
    const from = demo.record.length;
    const response = await fetch(target(path), {
      ...request,
      signal: AbortSignal.timeout(5000),
    });
    expect([response.status, response.headers.get('x-berth-job-id')]).toEqual([200, null]);
    await response.text();
    const upstream = demo.record.slice(from).find(({ method }) => method === 'POST');
    expect(upstream?.headers).not.toHaveProperty('x-berth-job-id');
    expect(upstream).toMatchObject({ gpu: false, status: 200 });
  });

  test('no more than configured go upstream at once, the others follow', async () => {
    const held = holdAll('demo-embed');
    const ask = () => fetch(target('/v1/embeddings'), embedding('demo-embed'));
    const first = [ask(), ask()];
    await eventually(() => held.arrived() === CONCURRENCY, { what: 'both places to be taken' });
    const others = [ask(), ask()];
    // A request of another kind is answered meanwhile: the line is of models without the GPU alone.
    expect((await fetch(target('/v1/models'))).status).toBe(200);
    expect(held.arrived()).toBe(CONCURRENCY);
    for (const each of gates) each.release();
    const responses = await Promise.all([...first, ...others]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(held.arrived()).toBe(4);
  });

  test('the queue was not touched', async () => {
    expect(await total('berth_queue_depth')).toBe(WAITING);
    expect(demo.generations().filter(({ aborted }) => !aborted)).toHaveLength(1);
    expect(demo.overlaps).toBe(0);
  });
});
