import { createServer } from 'node:net';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { BerthSystem, startBerthProcess } from '../support/berth-system.ts';
import {
  startDemoModelServer,
  hangUp,
  notReady,
  tooManyRequests,
  transientFailure,
} from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat } from '../support/requests.ts';

let demo: ScriptedModelServer;
let system: BerthSystem;
let redis: ReturnType<typeof connectRedis>;

beforeAll(async () => {
  demo = await startDemoModelServer();
  system = await BerthSystem.start({
    modelServerUrl: demo.url,
    env: {
      BERTH_CONFIG: new URL('../support/quick-retries.config.json', import.meta.url).pathname,
    },
  });
  redis = connectRedis(system.redis.url, 'patient', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await system.stop();
  await demo.close();
});

interface Shape {
  src: string;
  error: { message: string; type: string; param: string | null; code: string };
}
const ask = async (
  init: RequestInit = chat('x'),
  target = '/v1/chat/completions',
): Promise<Response> => fetch(system.url + target, init);
async function expectError(response: Response, status: number, code: string): Promise<Shape> {
  const body = (await response.json()) as Shape;
  expect([response.status, body.src, body.error.code]).toEqual([status, 'berth', code]);
  expect(typeof body.error.message).toBe('string');
  expect(Object.keys(body.error)).toEqual(['message', 'type', 'param', 'code']);
  return body;
}

describe('the model server', () => {
  test('is down: 502 after bounded attempts, and the queue goes on when it is back', async () => {
    await demo.refuseConnections();
    await expectError(await ask(), 502, 'model_server_unreachable');
    await demo.open();
    expect((await ask(chat('after'))).status).toBe(200);
  }, 40_000);

  test.each([
    ['hangs up', hangUp()],
    ['is not ready (503)', notReady()],
    ['is over its limit (429)', tooManyRequests()],
    ['unloaded the model meanwhile (500)', transientFailure()],
  ])(
    '%s once: the client notices nothing',
    async (_what, fault) => {
      demo.fault(fault);
      const response = await ask(chat(`once ${_what}`));
      expect(response.status).toBe(200);
      expect(await response.text()).toContain('chat.completion');
    },
    20_000,
  );

  test('does not know the model: its own 404, at once, though a job holds the GPU', async () => {
    const gate = demo.hold();
    const running = ask(chat('holds the GPU'));
    await gate.arrived;
    const response = await ask(chat('x', { model: 'no-such-model' }));
    const own = await fetch(
      `${demo.url}/v1/chat/completions`,
      chat('x', { model: 'no-such-model' }),
    );
    expect(response.status).toBe(404);
    expect(await response.text()).toBe(await own.text());
    const without = await ask({
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"no":"model"}',
    });
    expect([without.status, await without.text()]).toEqual([
      404,
      expect.stringContaining('no model id could be identified'),
    ]);
    for (const target of ['/v1/models', '/running', '/health'])
      expect((await fetch(system.url + target)).status).toBe(200);
    gate.release();
    expect((await running).status).toBe(200);
  });
});

describe('the client', () => {
  test('sends too much: 413, declared or not, and nothing is left of it', async () => {
    const small = await BerthSystem.start({
      modelServerUrl: demo.url,
      env: {
        POOL: 'small',
        BERTH_CONFIG: new URL('../support/small-body.config.json', import.meta.url).pathname,
      },
    });
    try {
      const big = 'x'.repeat(2_000_000);
      await expectError(
        await fetch(`${small.url}/v1/chat/completions`, chat(big)),
        413,
        'body_too_large',
      );
      const bomb = gzipSync(Buffer.from(JSON.stringify({ model: 'demo-chat-small', x: big })));
      const coded = await fetch(`${small.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        body: bomb,
      });
      await expectError(coded, 413, 'body_too_large');
    } finally {
      await small.stop();
    }
  }, 40_000);

  test('sends a coding we do not know, or a broken one: 415 and 400', async () => {
    const coded = (coding: string): RequestInit => ({
      method: 'POST',
      headers: { 'content-type': 'application/json', 'content-encoding': coding },
      body: '{"model":"demo-chat-small"}',
    });
    await expectError(await ask(coded('zstd')), 415, 'unsupported_encoding');
    await expectError(await ask(coded('gzip')), 400, 'bad_request');
  });

  test('leaves while it waits: its job is gone within a second and never reaches the model server', async () => {
    const gate = demo.hold();
    const running = ask(chat('stays'));
    await gate.arrived;
    const leaving = new AbortController();
    const left = ask({ ...chat('leaves'), signal: leaving.signal }).catch(() => 'left');
    const waiting = '{berth}:gpu:gpu:prioritized';
    await eventually(async () => (await redis.zcard(waiting)) === 1, {
      timeoutMs: 5000,
      what: 'the waiting job',
    });
    leaving.abort();
    await eventually(async () => (await redis.zcard(waiting)) === 0, {
      timeoutMs: 1000,
      what: 'its removal',
    });
    gate.release();
    expect((await running).status).toBe(200);
    expect(await left).toBe('left');
    expect(demo.attempts().some(({ headers }) => headers['x-test-name'] === 'leaves')).toBe(false);
  });

  test('leaves while its job runs: the generation is aborted within a second and the next one begins', async () => {
    const gate = demo.hold();
    const leaving = new AbortController();
    const left = ask({ ...chat('runs and leaves'), signal: leaving.signal }).catch(() => 'left');
    const { id } = await gate.arrived;
    leaving.abort();
    await eventually(() => demo.record.find((request) => request.id === id)?.aborted === true, {
      timeoutMs: 1000,
      what: 'the abort',
    });
    expect(await left).toBe('left');
    expect((await ask(chat('next'))).status).toBe(200);
  });
});

describe('Redis', () => {
  test('is down: 503 with Retry-After within 2.5 s, and all is well within 5 s of its return', async () => {
    await system.redis.kill('SIGKILL');
    const askedAt = performance.now();
    const response = await ask(chat('without redis'));
    expect(performance.now() - askedAt).toBeLessThan(2500);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    await expectError(response, 503, 'redis_unavailable');
    expect((await fetch(`${system.url}/berth/readyz`)).status).toBe(503);
    await system.redis.restart();
    const backAt = performance.now();
    await eventually(async () => (await ask(chat('again'))).status === 200, {
      timeoutMs: 5000,
      what: 'service',
    });
    expect(performance.now() - backAt).toBeLessThan(5000);
  }, 30_000);

  test('is frozen: 503 within 2.5 s, and the request that was refused is never generated', async () => {
    await system.redis.kill('SIGSTOP');
    const askedAt = performance.now();
    const response = await ask(chat('frozen'));
    expect(performance.now() - askedAt).toBeLessThan(2500);
    await expectError(response, 503, 'redis_unavailable');
    await system.redis.kill('SIGCONT');
    await eventually(async () => (await ask(chat('thawed'))).status === 200, {
      timeoutMs: 5000,
      what: 'service',
    });
    await eventually(async () => (await redis.zcard('{berth}:gpu:gpu:prioritized')) === 0, {
      timeoutMs: 5000,
      what: 'an empty queue',
    });
  }, 30_000);

  test('without AOF, or with a policy that evicts, is called out in readyz, the log and the metrics', async () => {
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru', 'appendonly', 'no');
    const ready = await eventually(
      async () => {
        const found = await fetch(`${system.url}/berth/readyz`);
        const text = await found.text();
        return found.status === 503 && text.includes('allkeys-lru') && text;
      },
      { timeoutMs: 5000, what: 'readyz to notice' },
    );
    expect(ready).toContain('allkeys-lru');
    expect(ready).toContain('appendonly is off');
    expect(system.output()).toMatch(/"level":"error".*"redis.durability"/);
    await redis.config('SET', 'maxmemory-policy', 'noeviction', 'appendonly', 'yes');
    await system.ready();
  });

  test('is nearly full: 503 memory_full before Redis refuses anything', async () => {
    const used = Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1]);
    await redis.config('SET', 'maxmemory', String(used + 1_000_000));
    const response = await eventually(
      async () => {
        const refused = await ask(chat('full'));
        return refused.status === 503 && refused;
      },
      { timeoutMs: 5000, what: 'admission to stop' },
    );
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    await expectError(response, 503, 'memory_full');
    await redis.config('SET', 'maxmemory', '0');
    await eventually(async () => (await ask(chat('room'))).status === 200, {
      timeoutMs: 5000,
      what: 'service',
    });
  });
});

describe('a start that must not be', () => {
  const ended = async (
    one: ReturnType<typeof startBerthProcess>,
  ): Promise<[number | null, string]> => {
    if (one.child.exitCode === null) await once(one.child, 'exit');
    return [one.child.exitCode, one.output()];
  };

  test('a second GPU worker: it exits naming the owner', async () => {
    const [code, output] = await ended(startBerthProcess('gpu', system.env()));
    expect(code).not.toBe(0);
    expect(output.trim().split('\n')).toEqual([
      expect.stringMatching(/already has an owner: worker gpu-0, pid \d+/),
    ]);
  });

  test('a port in use: one line', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    const [code, output] = await ended(
      startBerthProcess('ingress', { ...system.env(), PORT: String(port), LOG_LEVEL: 'error' }),
    );
    taken.close();
    expect(code).not.toBe(0);
    expect(output).toContain(`port ${port} of 127.0.0.1 is in use`);
  });

  test('a configuration that cannot be read: all faults, exit code not 0', async () => {
    const dir = await mkdtemp(path.join(tmpdir(), 'berth-none-'));
    const env = { ...system.env(), PORT: 'eighty', BERTH_CONFIG: path.join(dir, 'missing.json') };
    const [code, output] = await ended(startBerthProcess('ingress', env));
    await rm(dir, { recursive: true });
    expect(code).not.toBe(0);
    expect(output).toContain('PORT');
    expect(output).toContain('missing.json');
  });
});
