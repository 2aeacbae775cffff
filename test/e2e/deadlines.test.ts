import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { chat, namesOf } from '../support/requests.ts';

let model: ScriptedModelServer;
let berth: BerthSystem;

beforeAll(async () => {
  model = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: model.url });
});
afterAll(async () => {
  await berth.stop();
  await model.close();
});

async function ask(text: string, headers: Record<string, string> = {}): Promise<Response> {
  const request = chat(text);
  return fetch(`${berth.url}/v1/chat/completions`, {
    ...request,
    headers: { ...(request.headers as Record<string, string>), ...headers },
  });
}
const jobOf = async (id: string): Promise<JobObject> =>
  (await (await fetch(`${berth.url}/berth/jobs/${id}?wait=10`)).json()) as JobObject;
const ASYNC = { prefer: 'respond-async' };

test('a job that has not started by its deadline expires on time and never runs', async () => {
  const gate = model.hold();
  const front = ask('front');
  await gate.arrived;
  const sentAt = performance.now();
  const sync = ask('late', { 'x-berth-start-deadline': '1' });
  const made = await ask('also late', {
    ...ASYNC,
    'x-berth-start-deadline': new Date(Date.now() + 1000).toISOString(),
  });
  const { id } = (await made.json()) as JobObject;
  const answer = await sync;
  const tookMs = performance.now() - sentAt;
  expect(answer.status).toBe(504);
  expect(await answer.json()).toMatchObject({ error: { code: 'start_deadline_passed' } });
  expect(tookMs).toBeGreaterThan(950);
  expect(tookMs).toBeLessThan(2200);
  expect(await jobOf(id)).toMatchObject({
    state: 'expired',
    started_at: null,
    error: { code: 'start_deadline_passed' },
  });
  expect((await fetch(`${berth.url}/berth/jobs/${id}/result`)).status).toBe(504);
  gate.release();
  expect((await front).status).toBe(200);
  expect((await ask('in time', { 'x-berth-start-deadline': '60' })).status).toBe(200);
  expect(namesOf(model.generations())).toEqual(['front', 'in time']);
});

test('a job whose time to be cancelled comes is cancelled on time, waiting or running', async () => {
  const gate = model.hold();
  const sentAt = performance.now();
  const running = ask('runs too long', { 'cancel-after': '1s' });
  await gate.arrived;
  const waiting = ask('waits too long', { 'cancel-after': '500ms' });
  for (const answer of [await waiting, await running]) {
    expect(answer.status).toBe(409);
    expect(await answer.json()).toMatchObject({ error: { code: 'cancelled' } });
  }
  expect(performance.now() - sentAt).toBeGreaterThan(950);
  expect(performance.now() - sentAt).toBeLessThan(2500);
  gate.release();
  expect((await ask('afterwards', { 'cancel-after': '15m' })).status).toBe(200);
  expect(namesOf(model.generations())).not.toContain('waits too long');
});

test.each([
  [
    'x-berth-start-deadline',
    'X-Berth-Start-Deadline',
    ['0', '-1', 'soon', '2026-13-01', '1e3', ''],
  ],
  ['cancel-after', 'Cancel-After', ['0', '15 m', '15x', '-1', 'm', '', '9999999999']],
])('%s that cannot be read is refused by name', async (header, name, values) => {
  for (const value of values) {
    const answer = await ask('unread', { [header]: value });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { code: 'bad_request', param: name } });
  }
});
