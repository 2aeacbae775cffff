import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { keyedConfig, secretOf } from '../support/keyed-config.ts';
import type { KeyedConfig, TestKey } from '../support/keyed-config.ts';
import { chat } from '../support/requests.ts';

const KEYS: readonly TestKey[] = [
  { name: 'ann', tier: 'pro' },
  { name: 'low', defaultPriority: -100, maxPriority: 0 },
  { name: 'mort', mayAssert: ['member', 'tier'] },
  { name: 'root', admin: true },
];
const CHAT = '/v1/chat/completions';
const MODEL_SERVER_KEY = 'the-model-servers-own-key';

let demo: ScriptedModelServer;
let config: KeyedConfig;
let berth: BerthSystem;
let redis: Redis;

beforeAll(async () => {
  demo = await startDemoModelServer();
  config = keyedConfig(KEYS);
  berth = await BerthSystem.start({
    modelServerUrl: demo.url,
    env: { BERTH_CONFIG: config.file, MODEL_SERVER_API_KEY: MODEL_SERVER_KEY, LOG_LEVEL: 'debug' },
  });
  redis = new Redis(berth.redis.socket);
});
afterAll(async () => {
  redis.disconnect();
  await berth.stop();
  await demo.close();
  config.remove();
});

const bearer = (name: string) => ({ authorization: `Bearer ${secretOf(name)}` });

async function ask(
  target: string,
  headers: Record<string, string> = {},
  init: RequestInit = {},
): Promise<Response> {
  return fetch(berth.url + target, {
    ...init,
    headers: { ...(init.headers as Record<string, string> | undefined), ...headers },
  });
}
const talk = async (text: string, headers: Record<string, string>): Promise<Response> =>
  ask(CHAT, headers, chat(text));

async function codeOf(response: Response): Promise<[number, string]> {
  const body = (await response.json()) as { src: string; error: { code: string } };
  expect(body.src).toBe('berth');
  return [response.status, body.error.code];
}

/** What BullMQ and the board know of a job. */
async function factsOf(response: Response): Promise<Record<string, unknown>> {
  await response.text();
  const id = response.headers.get('x-berth-job-id');
  const data = await redis.hget(`{berth}:gpu:gpu:${id ?? ''}`, 'data');
  return JSON.parse(data ?? 'null') as Record<string, unknown>;
}

/** Sends a target exactly as it is written; fetch would tidy it up. */
async function rawStatus(path: string, headers: Record<string, string>): Promise<number> {
  const { hostname, port } = new URL(berth.url);
  return new Promise((resolve, reject) => {
    httpRequest({ hostname, port, path, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

const modelServerSaw = (text: string) =>
  demo.record.filter((seen) => seen.headers['x-test-name'] === text);

describe('with keys', () => {
  test.each<[string, Record<string, string>]>([
    ['Bearer', bearer('ann')],
    ['Basic', { authorization: `Basic ${btoa(`anybody:${secretOf('ann')}`)}` }],
    ['x-api-key', { 'x-api-key': secretOf('ann') }],
  ])('a key is taken as %s, and the model server sees its own instead', async (form, headers) => {
    const response = await talk(`as ${form}`, headers);
    expect(response.status).toBe(200);
    expect(await factsOf(response)).toMatchObject({ member: 'ann', tier: 'pro' });
    const [seen] = modelServerSaw(`as ${form}`);
    expect(seen?.headers.authorization).toBe(`Bearer ${MODEL_SERVER_KEY}`);
    expect(JSON.stringify(seen?.rawHeaders)).not.toContain(secretOf('ann'));
    expect(seen?.headers['x-api-key']).toBeUndefined();
  });

  test('what passes straight through carries no key of ours either', async () => {
    for (const headers of [bearer('ann'), { 'x-api-key': secretOf('ann') }]) {
      expect((await ask('/v1/models?probe', headers)).status).toBe(200);
      expect((await ask('/health?probe', headers)).status).toBe(200);
    }
    const seen = demo.record.filter(({ target }) => target.endsWith('?probe'));
    expect(seen).toHaveLength(4);
    expect(JSON.stringify(seen.map(({ rawHeaders }) => rawHeaders))).not.toContain('key-of-');
  });

  test('a missing or unknown key is a 401 that a browser can answer, and nothing goes upstream', async () => {
    for (const headers of [{}, bearer('eve'), { 'x-api-key': 'x' }] as Record<string, string>[]) {
      const response = await talk('uninvited', headers);
      expect(response.headers.get('www-authenticate')).toBe('Basic realm="berth"');
      expect(await codeOf(response)).toEqual([401, 'unauthorized']);
    }
    for (const target of ['/v1/models', '/unload', '/berth/board', '/berth/metrics', '/berth/jobs'])
      expect([target, (await ask(target)).status]).toEqual([target, 401]);
    expect(modelServerSaw('uninvited')).toEqual([]);
  });

  test('a large upload without a key is refused before it is read', async () => {
    const body = 'x'.repeat(3_000_000);
    const response = await ask(CHAT, {}, { method: 'POST', body });
    expect(await codeOf(response)).toEqual([401, 'unauthorized']);
  });

  test('health and OPTIONS need none', async () => {
    for (const target of ['/health', '/wol-health', '/berth/healthz', '/berth/readyz'])
      expect([target, (await ask(target)).status]).toEqual([target, 200]);
    expect((await ask(CHAT, {}, { method: 'OPTIONS' })).status).toBe(204);
  });

  test('admin routes are closed to ordinary and to trusted keys', async () => {
    const loads = demo.record.filter(({ target }) => target.includes('unload')).length;
    for (const name of ['ann', 'mort']) {
      for (const target of [
        '/unload',
        '/logs',
        '/api/events',
        '/berth/board',
        '/berth/board/api/queues',
      ])
        expect(await codeOf(await ask(target, bearer(name)))).toEqual([403, 'forbidden']);
      for (const target of ['/%75nload', '//unload', '/v1/../unload', '/UNLOAD', '/berth/Board'])
        expect([target, await rawStatus(target, bearer(name))]).toEqual([target, 403]);
    }
    expect(demo.record.filter(({ target }) => target.includes('unload'))).toHaveLength(loads);
    expect((await ask('/berth/metrics', bearer('ann'))).status).toBe(200);
    expect((await ask('/berth/board', bearer('root'))).status).toBe(200);
    expect((await ask('/unload', bearer('root'))).status).toBe(200);
    expect(await codeOf(await ask('/berth/jobs/x', bearer('ann')))).toEqual([404, 'job_not_found']);
  });

  test('a trusted key speaks for others, an ordinary one only for itself', async () => {
    const says = { 'x-berth-member': 'bob', 'x-berth-tier': 'max' };
    const facts = async (name: string) =>
      factsOf(await talk(`for ${name}`, { ...bearer(name), ...says }));
    expect(await facts('mort')).toMatchObject({ member: 'bob', tier: 'max' });
    expect(await facts('ann')).toMatchObject({ member: 'ann', tier: 'pro' });
    const plain = await factsOf(await talk('mort itself', bearer('mort')));
    expect(plain).toMatchObject({ member: 'mort', tier: 'free' });
    const metrics = await (await ask('/berth/metrics', bearer('ann'))).text();
    expect(metrics).toMatch(/berth_ignored_assertions_total\{[^}]*header="member"[^}]*\} 1\b/);
  });

  test.each([
    ['ann', '100', '100'],
    ['ann', '5000', '100'],
    ['ann', undefined, '0'],
    ['low', '100', '0'],
    ['low', undefined, '-100'],
    ['mort', '5000', '5000'],
    ['root', '5000', '5000'],
  ])('%s asks for %s and gets %s', async (name, asked, given) => {
    const priority = asked === undefined ? undefined : { 'x-llamaswap-priority': asked };
    const response = await talk('rank', { ...bearer(name), ...priority });
    await response.text();
    expect(response.headers.get('x-berth-priority')).toBe(given);
  });

  test('keys change under a running Berth, and a request under way goes on', async () => {
    const gate = demo.hold(({ headers }) => headers['x-test-name'] === 'under way');
    const underWay = talk('under way', bearer('ann'));
    await gate.arrived;
    config.write([...KEYS.filter(({ name }) => name !== 'ann'), { name: 'new' }]);
    const changedAt = performance.now();
    await eventually(async () => (await ask('/v1/models', bearer('new'))).status === 200, {
      what: 'the new key to be taken',
    });
    expect((await ask('/v1/models', bearer('ann'))).status).toBe(401);
    expect(performance.now() - changedAt).toBeLessThan(5000);
    gate.release();
    expect((await underWay).status).toBe(200);
    config.write(KEYS);
    await eventually(async () => (await ask('/v1/models', bearer('ann'))).status === 200, {
      what: 'the old key to be back',
    });
  });

  test('no process ever wrote a key, its hash or the credential of the model server', () => {
    const output = berth.output();
    expect(output).toContain('keys.changed');
    expect(output).not.toContain('key-of-');
    expect(output).not.toContain(MODEL_SERVER_KEY);
    expect(output).not.toMatch(/[0-9a-f]{64}/);
    expect(output).not.toContain(btoa(`anybody:${secretOf('ann')}`));
  });
});
