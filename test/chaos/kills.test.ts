import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat, namesOf } from '../support/requests.ts';

const WAITERS = 50;
let demo: ScriptedModelServer;
let system: BerthSystem;
let redis: ReturnType<typeof connectRedis>;

beforeEach(async () => {
  demo = await startDemoModelServer({ tokensPerSecond: 200 });
  system = await BerthSystem.start({ modelServerUrl: demo.url, fsync: 'always' });
  redis = connectRedis(system.redis.url, 'patient', () => undefined);
});
afterEach(async () => {
  redis.disconnect();
  await system.stop();
  await demo.close();
});

const report = (line: string): void => void process.stdout.write(`${line}\n`);
const completed = (): string[] => namesOf(demo.generations());

/** Clients that came one after the other; resolves to their statuses. */
async function queueUp(): Promise<{ names: string[]; statuses: Promise<number[]> }> {
  const names = Array.from({ length: WAITERS }, (_, index) => `waiter ${index}`);
  const all: Promise<number>[] = [];
  for (const [index, name] of names.entries()) {
    all.push(
      fetch(`${system.url}/v1/chat/completions`, chat(name)).then(async (response) => {
        await response.text();
        return response.status;
      }),
    );
    await eventually(async () => Number(await redis.get('{berth}:gpu:arrivals')) === index + 1, {
      timeoutMs: 5000,
      what: `${name} to be queued`,
    });
  }
  return { names, statuses: Promise.all(all) };
}

test('the GPU worker is killed while 50 clients wait: all are answered, in order, none generated twice at once', async () => {
  const gate = demo.hold();
  const { names, statuses } = await queueUp();
  await gate.arrived;
  const started = demo.attempts().length;
  await system.processes.gpu?.kill('SIGKILL');
  gate.release();
  const killedAt = performance.now();
  await system.startProcess('gpu');
  await eventually(() => demo.attempts().length > started, {
    timeoutMs: 10_000,
    what: 'the next generation',
  });
  report(`worker killed -> next generation: ${Math.round(performance.now() - killedAt)} ms`);
  await eventually(() => completed().length > 10, { timeoutMs: 20_000, what: 'some answers' });
  await system.processes.gpu?.kill('SIGKILL');
  await system.startProcess('gpu');
  expect(await statuses).toEqual(names.map(() => 200));
  expect([...new Set(completed())]).toEqual(names);
  expect(demo.overlaps).toBe(0);
}, 90_000);

test('Redis is killed while 50 clients wait: all are answered, in order, none generated twice', async () => {
  const gate = demo.hold();
  const { names, statuses } = await queueUp();
  await gate.arrived;
  const started = demo.attempts().length;
  await system.redis.kill('SIGKILL');
  gate.release();
  await system.redis.restart();
  const backAt = performance.now();
  await eventually(() => demo.attempts().length > started, {
    timeoutMs: 10_000,
    what: 'the next generation',
  });
  const recoveryMs = Math.round(performance.now() - backAt);
  report(`Redis back -> next generation: ${recoveryMs} ms`);
  expect(recoveryMs).toBeLessThan(5000);
  await eventually(() => completed().length > 20, { timeoutMs: 20_000, what: 'some answers' });
  await system.redis.kill('SIGKILL');
  await system.redis.restart();
  expect(await statuses).toEqual(names.map(() => 200));
  expect(completed()).toEqual(names);
  expect(demo.overlaps).toBe(0);
}, 90_000);

test('the ingress freezes for longer than its liveness key lasts: its waiters keep their places and are answered', async () => {
  const gate = demo.hold();
  const { names, statuses } = await queueUp();
  await gate.arrived;
  const { child } = system.processes.ingress ?? {};
  child?.kill('SIGSTOP');
  await eventually(async () => (await redis.keys('{berth}:gpu:alive:*')).length === 1, {
    timeoutMs: 1000,
    what: 'the liveness key',
  });
  const [key = ''] = await redis.keys('{berth}:gpu:alive:*');
  // Its own last word has run out when another speaks for it.
  await eventually(async () => (await redis.get(key)) === 'vouched', {
    timeoutMs: 5000,
    what: 'the ingress to be vouched for',
  });
  const frozenUntil = performance.now() + 3000;
  await eventually(
    async () => {
      expect(await redis.exists(key)).toBe(1);
      return performance.now() > frozenUntil;
    },
    { timeoutMs: 6000, everyMs: 50, what: 'three more seconds' },
  );
  child?.kill('SIGCONT');
  gate.release();
  expect(await statuses).toEqual(names.map(() => 200));
  expect(completed()).toEqual(names);
}, 60_000);

test('the ingress is killed: its waiters are evicted within 5 s unseen by the model server, its running job is aborted', async () => {
  const gate = demo.hold();
  const all = Array.from({ length: 20 }, async (_, index) =>
    fetch(`${system.url}/v1/chat/completions`, chat(`client ${index}`)).catch(() => undefined),
  );
  await gate.arrived;
  const waiting = '{berth}:gpu:gpu:prioritized';
  const active = '{berth}:gpu:gpu:active';
  await eventually(async () => (await redis.zcard(waiting)) === 19, {
    timeoutMs: 5000,
    what: '19 waiting jobs',
  });
  const ids = [...(await redis.zrange(waiting, '0', '-1')), ...(await redis.lrange(active, 0, -1))];
  expect(ids).toHaveLength(20);
  await system.processes.ingress?.kill('SIGKILL');
  const killedAt = performance.now();
  await eventually(() => demo.attempts()[0]?.aborted === true, {
    timeoutMs: 5000,
    what: 'the running one to be aborted',
  });
  report(`ingress killed -> running job aborted: ${Math.round(performance.now() - killedAt)} ms`);
  await eventually(
    async () => {
      const left = (await redis.keys('*')).filter((key) => ids.some((id) => key.includes(id)));
      if (left.length > 0) throw new Error(left.join(' '));
      return (await redis.zcard(waiting)) === 0 && (await redis.llen(active)) === 0;
    },
    { timeoutMs: 5000, what: 'nothing of them in Redis' },
  );
  const evictedMs = Math.round(performance.now() - killedAt);
  report(`ingress killed -> waiters evicted: ${evictedMs} ms`);
  expect(evictedMs).toBeLessThan(5000);
  await Promise.all(all);
  expect(demo.attempts()).toHaveLength(1);
  await system.startProcess('ingress');
  await system.ready();
  const response = await fetch(`${system.url}/v1/chat/completions`, chat('afterwards'));
  expect(response.status).toBe(200);
}, 60_000);
