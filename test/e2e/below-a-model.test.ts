import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { WebSocket } from 'undici';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { Gate, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat } from '../support/requests.ts';

let demo: ScriptedModelServer;
let system: BerthSystem;
let gates: Gate[] = [];

beforeAll(async () => {
  demo = await startDemoModelServer();
  const env = { SHUTDOWN_GRACE_SECONDS: '1' };
  system = await BerthSystem.start({ modelServerUrl: demo.url, env });
}, 60_000);

afterAll(async () => {
  await system.stop();
  await demo.close();
});

afterEach(() => {
  for (const gate of gates) gate.release();
  gates = [];
});

const target = (path: string): string => system.url + path;
const talk = async (text: string, model = 'demo-chat-small'): Promise<Response> =>
  fetch(target('/v1/chat/completions'), chat(text, { model }));
const done = async (response: Promise<Response>): Promise<number> => {
  const answer = await response;
  await answer.text();
  return answer.status;
};
const soon = (): RequestInit => ({ signal: AbortSignal.timeout(20_000) });

/** One job runs, held at the model server. */
async function runs(text: string): Promise<{ ended: Promise<number>; gate: Gate }> {
  const gate = demo.hold(({ headers }) => headers['x-test-name'] === text);
  gates.push(gate);
  const ended = done(talk(text));
  await gate.arrived;
  return { ended, gate };
}

const prompt = (ms: number): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ prompt: {}, demo_ms: ms }),
});

describe('a prompt of ComfyUI', () => {
  test('is answered at once and keeps the GPU until it is rendered; its polls get through', async () => {
    const submitted = await fetch(target('/comfyui/prompt'), prompt(2500));
    const { prompt_id: id } = (await submitted.json()) as { prompt_id: string };
    expect([submitted.status, submitted.headers.get('x-berth-job-id')]).toEqual([
      200,
      expect.any(String),
    ]);
    const from = demo.generations().length;
    const next = done(talk('after the render'));
    const looked = await fetch(target(`/comfyui/history/${id}`));
    expect(await looked.json()).toEqual({});
    expect(looked.headers.get('x-berth-job-id')).toBeNull();
    expect(demo.generations()).toHaveLength(from);
    expect(await next).toBe(200);
    // It went only then: the render had not been cut, and nothing ran beside it.
    expect(demo.overlaps).toBe(0);
    const { headers, status } = await fetch(target('/comfyui/history/x'));
    expect([status, headers.get('x-berth-job-id')]).toEqual([409, null]);
  });

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'outlives its worker (%s): the next one takes it up, and nothing runs beside it',
    async (signal) => {
      const prompts = () => demo.record.filter(({ method }) => method === 'POST').length;
      const submitted = await fetch(target('/comfyui/prompt'), prompt(5000));
      const id = submitted.headers.get('x-berth-job-id') ?? '';
      const answer = await submitted.text();
      const before = prompts();
      const next = done(talk(`behind a worker that got ${signal}`));
      await system.processes.gpu?.kill(signal);
      await system.startProcess('gpu');
      expect(await next).toBe(200);
      expect(demo.overlaps).toBe(0);
      // Only the chat came after it; nothing was rendered twice or stopped.
      expect(prompts()).toBe(before + 1);
      const job = await (await fetch(target(`/berth/jobs/${id}`))).json();
      expect(job).toMatchObject({ state: 'completed', error: null });
      const { gpu_seconds: seconds } = (job as { metrics: { gpu_seconds: number } }).metrics;
      expect(seconds).toBeGreaterThan(4.5);
      expect(await (await fetch(target(`/berth/jobs/${id}/result`))).text()).toBe(answer);
    },
    30_000,
  );
});

describe('below a model', () => {
  test('a look at a loaded model passes while a job runs; one at another model waits its turn', async () => {
    const { ended, gate } = await runs('looked at');
    const look = await fetch(target('/upstream/demo-chat-small/health'), soon());
    expect([look.status, look.headers.get('x-berth-job-id')]).toEqual([200, null]);
    expect((await fetch(target('/upstream/demo-image/style.css'), soon())).status).toBe(409);
    const other = fetch(target('/upstream/demo-image/health'));
    let hasAnswer = false;
    void other.then(() => (hasAnswer = true));
    expect((await fetch(target('/running'), soon())).status).toBe(200);
    expect(hasAnswer).toBe(false);
    gate.release();
    expect(await ended).toBe(200);
    expect((await other).headers.get('x-berth-job-id')).not.toBeNull();
  });

  test.each([
    ['GET', '/upstream/demo-chat-small', 301, '/upstream/demo-chat-small/'],
    ['POST', '/upstream/demo-chat-small?a=1', 308, '/upstream/demo-chat-small/?a=1'],
    ['GET', '/comfyui', 301, '/comfyui/'],
    ['GET', '/', 302, '/ui'],
  ])('the redirect of %s %s is relayed', async (method, path, status, location) => {
    const response = await fetch(target(path), { method, redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([status, location]);
  });

  test('sockets give way to a job whose model they keep out', async () => {
    expect(await done(talk('loads the small one'))).toBe(200);
    const socket = new WebSocket(target('/upstream/demo-chat-small/ws').replace('http', 'ws'));
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    const closed = new Promise((resolve) => (socket.onclose = resolve));
    expect(await done(talk('needs the large one', 'demo-chat-large'))).toBe(200);
    await closed;
  });
});

describe('what stops models', () => {
  test.each([
    ['GET', '/unload', undefined],
    ['POST', '/api/models/unload', undefined],
    ['POST', '/api/models/unload/demo-chat-small', undefined],
    ['PUT', '/api/profiles/active', '{"name":null}'],
  ])('%s %s waits for the running job and goes before the others', async (method, path, body) => {
    const name = `is not cut by ${method} ${path}`;
    const { ended, gate } = await runs(name);
    const waiting = done(talk(`${name}, waits`));
    const from = demo.record.length;
    const asked = done(fetch(target(path), body === undefined ? { method } : { method, body }));
    const seen = () => demo.record.slice(from).filter(({ target: at }) => at === path);
    await eventually(
      async () => {
        const answer = await fetch(target('/berth/jobs?state=waiting'));
        const { data } = (await answer.json()) as { data: { model: string }[] };
        return data.length === 2 && data.some(({ model }) => model === '(none)');
      },
      { what: 'both to wait' },
    );
    expect(seen()).toEqual([]);
    gate.release();
    expect([await ended, await asked, await waiting]).toEqual([200, 200, 200]);
    const order = demo.record
      .slice(from)
      .filter(({ target: at, method: verb }) => at === path || verb === 'POST')
      .map(({ target: at }) => at);
    expect(order[0]).toBe(path);
    expect(demo.generations().some(({ aborted }) => aborted)).toBe(false);
  });
});
