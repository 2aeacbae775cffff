import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import type { FilmObject } from '../../src/gateway/film-view.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { modelFailure, startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';

const SHOTS = 174;
/** Chance of a shot to fail, and of each kind of disturbance at a look. */
const FAILS = 0.05;
const LOOK_MS = 60;

let demo: ScriptedModelServer;
let system: BerthSystem;
let redis: ReturnType<typeof connectRedis>;

beforeEach(async () => {
  demo = await startDemoModelServer({ tokensPerSecond: 100 });
  system = await BerthSystem.start({ modelServerUrl: demo.url, fsync: 'always' });
  redis = connectRedis(system.redis.url, 'patient', () => undefined);
});
afterEach(async () => {
  redis.disconnect();
  await system.stop();
  await demo.close();
});

const json = { 'content-type': 'application/json' };

async function change(method: string, path: string): Promise<void> {
  await fetch(`${system.url}${path}`, { method }).catch(() => undefined);
}

/** How many of the film's shots wait or run, and its state, at one moment. */
async function present(id: string): Promise<{ count: number; state: string }> {
  const queue = '{berth}:gpu:gpu:';
  const replies = await redis
    .multi()
    .zcard(`${queue}prioritized`)
    .zcard(`${queue}delayed`)
    .llen(`${queue}active`)
    .llen(`${queue}wait`)
    .hget(`{berth}:gpu:film:${id}`, 'state')
    .exec();
  const [waiting, delayed, active, stray, state] = (replies ?? []).map(([, reply]) => reply);
  return {
    count: Number(waiting) + Number(delayed) + Number(active) + Number(stray),
    state: String(state),
  };
}

test('a film of 174 shots under kills of worker and Redis, pauses, skips and retries: none lost, none again after it was done, none out of order, never two', async () => {
  demo.fault(modelFailure(500), { where: () => Math.random() < FAILS, times: Infinity });
  const shots = Array.from({ length: SHOTS }, (_, index) => ({
    path: '/v1/chat/completions',
    headers: { 'X-Test-Name': String(index + 1) },
    body: {
      model: 'demo-chat-small',
      max_tokens: 3,
      messages: [{ role: 'user', content: `shot ${index + 1}` }],
      metadata: {},
    },
    ...(index > 0 ? { take: [{ from: '/id', to: '/metadata/before' }] } : {}),
  }));
  const made = await fetch(`${system.url}/berth/films`, {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ shots }),
  });
  const path = String(made.headers.get('location'));
  const id = path.slice(path.lastIndexOf('/') + 1);
  const faults: unknown[] = [];
  let kills = 0;
  for (;;) {
    const look = await present(id);
    if (look.state === 'completed') break;
    const isRight = look.state === 'running' ? look.count === 1 : look.count <= 1;
    if (!isRight) faults.push(look);
    const chance = Math.random();
    if (look.state === 'failed') await change('POST', `${path}/${chance < 0.8 ? 'retry' : 'skip'}`);
    else if (look.state === 'paused') await change('POST', `${path}/resume`);
    else if (chance < 0.05) await change('POST', `${path}/pause`);
    else if (chance < 0.07) await change('POST', `${path}/skip`);
    else if (chance < 0.1) {
      kills += 1;
      await system.processes.gpu?.kill('SIGKILL');
      await system.startProcess('gpu');
    } else if (chance < 0.13) {
      kills += 1;
      await system.redis.kill('SIGKILL');
      await system.redis.restart();
    }
    await sleep(LOOK_MS * Math.random());
  }
  await system.ready();
  const film = (await (await fetch(`${system.url}${path}`)).json()) as FilmObject;
  const states = film.shots.map(({ state }) => state);
  expect(states.filter((state) => state !== 'completed' && state !== 'skipped')).toEqual([]);
  expect(faults).toEqual([]);
  expect(demo.overlaps).toBe(0);
  const ran = demo.generations().map(({ headers }) => Number(headers['x-test-name']));
  expect(ran).toEqual(ran.toSorted((a, b) => a - b));
  const completed = states.flatMap((state, index) => (state === 'completed' ? [index + 1] : []));
  expect([...new Set(ran)].filter((shot) => completed.includes(shot))).toEqual(completed);
  const again = ran.length - new Set(ran).size;
  process.stdout.write(`${kills} kills, ${again} shots cut by one and run again\n`);
  expect(again).toBeLessThanOrEqual(kills + film.shots.reduce((sum, { tries }) => sum + tries, 0));
  expect(await redis.get('{berth}:gpu:films:repaired')).toBeNull();
}, 600_000);
