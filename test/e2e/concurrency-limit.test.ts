import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat } from '../support/requests.ts';

const BURST = 200;

let demo: ScriptedModelServer;
let system: BerthSystem;

beforeAll(async () => {
  demo = await startDemoModelServer({ concurrencyLimit: 1 });
  system = await BerthSystem.start({ modelServerUrl: demo.url });
});
afterAll(async () => {
  await system.stop();
  await demo.close();
});

const ask = (text: string, url = system.url) => fetch(`${url}/v1/chat/completions`, chat(text));
const refusals = () => demo.attempts().filter(({ status }) => status === 429).length;

test('a burst far above the limit of the model server is answered in full', async () => {
  const around = Array.from({ length: 5 }, (_, index) => ask(`around ${index}`, demo.url));
  const burst = Array.from({ length: BURST }, (_, index) => ask(`burst ${index}`));
  expect((await Promise.all(around)).map(({ status }) => status)).toContain(429);
  const statuses = (await Promise.all(burst)).map(({ status }) => status);
  expect(statuses).toEqual(statuses.map(() => 200));
}, 60_000);

test('a job refused because of traffic around the gateway is repeated, unseen by its client', async () => {
  const gate = demo.hold();
  const around = ask('around', demo.url);
  await gate.arrived;
  const before = refusals();
  const answer = ask('patient');
  await eventually(() => refusals() > before, { what: 'the refusal' });
  gate.release();
  expect((await around).status).toBe(200);
  expect((await answer).status).toBe(200);
}, 30_000);
