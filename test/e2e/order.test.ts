import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { chat, namesOf, ranked } from '../support/requests.ts';

let demo: ScriptedModelServer;
let system: BerthSystem;
let redis: ReturnType<typeof connectRedis>;

beforeAll(async () => {
  demo = await startDemoModelServer();
  system = await BerthSystem.start({ modelServerUrl: demo.url });
  redis = connectRedis(system.redis.url, 'patient', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await system.stop();
  await demo.close();
});
let before = 0;
beforeEach(() => {
  before = demo.generations().length;
});

const post = async (request: RequestInit): Promise<Response> => {
  const response = await fetch(`${system.url}/v1/chat/completions`, request);
  await response.clone().text();
  return response;
};
const waiting = async (count: number): Promise<unknown> =>
  eventually(async () => (await redis.zcard('{berth}:gpu:gpu:prioritized')) === count, {
    timeoutMs: 5000,
    what: `${count} waiting jobs`,
  });
/** What was asked, in the order in which the model server began with it. */
const order = (): string[] => namesOf(demo.generations().slice(before));

test('low priority first, high second, both for other models: high goes first, the running one is undisturbed', async () => {
  const gate = demo.hold();
  const running = post(chat('running'));
  await gate.arrived;
  const low = post(ranked('low', '-10', { model: 'demo-chat-large' }));
  await waiting(1);
  const high = post(ranked('high', '10', { model: 'demo/org-chat' }));
  await waiting(2);
  gate.release();
  const answers = await Promise.all([running, low, high]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(order()).toEqual(['running', 'high', 'low']);
  expect(demo.generations().slice(before)[0]?.aborted).toBe(false);
  expect(demo.overlaps).toBe(0);
});

test('equal priority keeps arrival order', async () => {
  const gate = demo.hold();
  const all = [post(chat('running'))];
  await gate.arrived;
  for (let index = 1; index <= 6; index += 1) {
    all.push(post(chat(`equal ${index}`)));
    await waiting(index);
  }
  gate.release();
  await Promise.all(all);
  expect(order()).toEqual([
    'running',
    'equal 1',
    'equal 2',
    'equal 3',
    'equal 4',
    'equal 5',
    'equal 6',
  ]);
});

test('bands, tiers, aliases and the headers of both seeds make one order', async () => {
  const gate = demo.hold();
  const all = [post(chat('running'))];
  await gate.arrived;
  const headers: [string, Record<string, string>][] = [
    ['batch free', { 'x-llamaswap-priority': 'batch' }],
    ['batch max', { 'x-llamaswap-priority': '-100', 'x-berth-tier': 'max' }],
    ['batch pro by number', { 'x-llamaswap-priority': '-99' }],
    ['film shot', { 'x-berth-intent': 'film-shot' }],
    ['unreadable is normal', { 'x-llamaswap-priority': '1e2' }],
    ['low', { 'x-priority': 'low' }],
    ['elevated', { 'x-priority': '10' }],
    ['video intent', { 'x-berth-intent': 'video' }],
    ['above', { 'x-llamaswap-priority': '+250' }],
  ];
  for (const [index, [text, extra]] of headers.entries()) {
    const request = chat(text);
    all.push(
      post({
        ...request,
        headers: { 'content-type': 'application/json', 'x-test-name': text, ...extra },
      }),
    );
    await waiting(index + 1);
  }
  gate.release();
  const answers = await Promise.all(all);
  expect(order().slice(1)).toEqual([
    'above',
    'elevated',
    'video intent',
    'unreadable is normal',
    'batch max',
    'batch pro by number',
    'batch free',
    'film shot',
    'low',
  ]);
  expect(answers[9]?.headers.get('x-berth-priority')).toBe('250');
  expect(answers[9]?.headers.get('x-berth-band')).toBe('interactive');
  expect(answers[9]?.headers.get('x-berth-job-id')).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4/);
  expect(answers[9]?.headers.get('server-timing')).toMatch(/^queue;dur=\d+$/);
});
