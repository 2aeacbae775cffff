import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { BerthSystem } from '../support/berth-system.ts';
import {
  hangUp,
  startDemoModelServer,
  type Gate,
  type ScriptedModelServer,
} from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

/** Every word that must not be seen begins with this and says whose it is. */
const CREDENTIAL = 'canary-credential';
const PROMPT = 'canary-prompt';
const LARGE_BYTES = 300 * 1024;
const SHAPES = ['small', 'large', 'multipart'] as const;
type Shape = (typeof SHAPES)[number];

/** Where design.md lets a body be while its job waits, runs or can be retried. */
const BODY_PLACE: Record<Shape, string> = {
  small: 'redis {berth}:gpu:payload:<id> body',
  large: 'file bodies/<id>.request',
  multipart: 'redis {berth}:gpu:payload:<id> body',
};

let modelServer: ScriptedModelServer;
let berth: BerthSystem;
let redis: Redis;
let gate: Gate | undefined;
const failedIds: string[] = [];
const open: Promise<unknown>[] = [];

beforeAll(async () => {
  modelServer = await startDemoModelServer();
  const env = {
    LOG_LEVEL: 'debug',
    BERTH_CONFIG: new URL('../support/quick-retries.config.json', import.meta.url).pathname,
  };
  berth = await BerthSystem.start({ modelServerUrl: modelServer.url, env });
  redis = new Redis(berth.redis.socket);
});

afterAll(async () => {
  gate?.release();
  await Promise.allSettled(open);
  redis.disconnect();
  await berth.stop();
  await modelServer.close();
});

const promptOf = (scene: string, shape: Shape): string => `${PROMPT}-${shape}-${scene};`;

async function send(scene: string, shape: Shape, init: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = {
    Authorization: `Bearer ${CREDENTIAL}-bearer-${scene}`,
    'x-api-key': `${CREDENTIAL}-key-${scene}`,
    Cookie: `session=${CREDENTIAL}-cookie-${scene}`,
    ...(init.headers as Record<string, string> | undefined),
  };
  const query = `?api_key=${CREDENTIAL}-query-${scene}`;
  const signal = init.signal ?? null;
  if (shape === 'multipart') {
    const form = new FormData();
    form.set('model', 'demo-audio');
    form.set('file', new Blob(['RIFF']), `${promptOf(scene, shape)}.wav`);
    const url = `${berth.url}/v1/audio/transcriptions${query}`;
    return fetch(url, { method: 'POST', headers, body: form, signal });
  }
  const filler = 'x'.repeat(shape === 'large' ? LARGE_BYTES / 2 : 10);
  headers['Content-Type'] = 'application/json';
  const body = JSON.stringify({
    model: scene === 'unknown' ? 'no-such-model' : 'demo-chat-small',
    messages: [{ role: 'user', content: filler + promptOf(scene, shape) + filler }],
    max_tokens: 3,
  });
  const url = `${berth.url}/v1/chat/completions${query}`;
  return fetch(url, { method: 'POST', headers, body, signal });
}

/** Buffers of a reply, however deep, as text in which every byte is a character. */
function textOf(reply: unknown): string {
  if (Buffer.isBuffer(reply)) return reply.toString('latin1');
  return Array.isArray(reply) ? reply.map(textOf).join('\n') : String(reply);
}

/** Everything in Redis: name of the key (and the field of a hash) and what is there. */
async function redisPlaces(): Promise<[place: string, text: string][]> {
  const found: [string, string][] = [];
  for (const key of await redis.keys('*')) {
    const read: Record<string, () => Promise<unknown>> = {
      string: async () => redis.callBuffer('GET', key),
      list: async () => redis.callBuffer('LRANGE', key, 0, -1),
      set: async () => redis.callBuffer('SMEMBERS', key),
      zset: async () => redis.callBuffer('ZRANGE', key, 0, -1, 'WITHSCORES'),
      stream: async () => redis.callBuffer('XRANGE', key, '-', '+'),
    };
    const type = await redis.type(key);
    if (type === 'hash') {
      for (const [field, value] of Object.entries(await redis.hgetallBuffer(key)))
        found.push([`redis ${key} ${field}`, `${key} ${field} ${textOf(value)}`]);
    } else if (type !== 'none') {
      const reader = read[type];
      if (reader === undefined) throw new Error(`${key} is a ${type}, which nobody reads here`);
      found.push([`redis ${key}`, `${key} ${textOf(await reader())}`]);
    }
  }
  return found;
}

async function filePlaces(folder: string, kind: string): Promise<[string, string][]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(
    files.map(async (entry): Promise<[string, string]> => {
      const file = path.join(entry.parentPath, entry.name);
      const name = path.relative(folder, file);
      // A file may be taken away between the listing and the look.
      const text = await readFile(file, 'latin1').catch(() => '');
      return [`${kind} ${name}`, `${name}\n${text}`];
    }),
  );
}

async function httpPlaces(): Promise<[string, string][]> {
  const ids = await redis.keys('{berth}:gpu:gpu:????????-????-????-????-????????????');
  const jobs = ids.map((key) => `/berth/board/api/queues/gpu/${key.slice(-36)}`);
  const paths = [
    '/berth/metrics',
    '/berth/readyz',
    '/berth/board/api/queues?activeQueue=gpu&status=latest&page=1&jobsPerPage=50',
    ...jobs.flatMap((job) => [job, `${job}/logs`, `${job}/flow`]),
  ];
  return Promise.all(
    paths.map(async (at): Promise<[string, string]> => {
      const response = await fetch(berth.url + at);
      return [`http ${at}`, await response.text()];
    }),
  );
}

/** Redis and DATA_DIR as they are now. */
const stored = async (): Promise<[string, string][]> => [
  ...(await redisPlaces()),
  ...(await filePlaces(berth.dataDir, 'file')),
];

const appendOnlyFiles = async (): Promise<[string, string][]> =>
  filePlaces(path.dirname(berth.redis.socket), 'aof');

/** What everybody can read: HTTP and the output of all processes. */
const shown = async (): Promise<[string, string][]> => [
  ...(await httpPlaces()),
  ['output', berth.output()],
];

/** The places in which a word stands, job ids left out of their names. */
function placesOf(word: string, places: [string, string][]): string[] {
  return places
    .filter(([, text]) => text.includes(word))
    .map(([place]) => place.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, '<id>'));
}

async function expectBodies(scene: string, isKept: boolean): Promise<void> {
  const places = await stored();
  for (const shape of SHAPES) {
    const seen = placesOf(promptOf(scene, shape), places);
    expect([scene, shape, seen]).toEqual([scene, shape, isKept ? [BODY_PLACE[shape]] : []]);
  }
}

async function expectGone(scene: string): Promise<void> {
  const what = `the bodies of ${scene} jobs to be gone`;
  await eventually(async () => expectBodies(scene, false), { what, everyMs: 100 });
}

test('the search used here finds a word in every kind of place', async () => {
  const word = 'planted-word';
  const file = path.join(berth.dataDir, 'bodies', 'planted');
  await redis.set('planted:string', word);
  await redis.set(`planted:${word}`, 'in the name');
  await redis.hset('planted:hash', 'field', word);
  await redis.rpush('planted:list', word);
  await redis.sadd('planted:set', word);
  await redis.zadd('planted:zset', '1', word);
  await redis.xadd('planted:stream', '*', 'field', word);
  await writeFile(file, Buffer.concat([Buffer.from([0, 255]), Buffer.from(word)]));
  const keys = ['string', word, 'hash field', 'list', 'set', 'zset', 'stream'];
  const expected = ['file bodies/planted', ...keys.map((key) => `redis planted:${key}`)];
  expect(placesOf(word, await stored()).toSorted()).toEqual(expected.toSorted());
  expect(placesOf(word, await appendOnlyFiles())).toHaveLength(1);
  await redis.del(await redis.keys('planted:*'));
  await rm(file);
});

test('credentials reach the model server, and a completed job leaves no body in Redis or DATA_DIR', async () => {
  for (const shape of SHAPES) {
    const response = await send('completed', shape);
    await response.text();
    expect([shape, response.status]).toEqual([shape, 200]);
  }
  const request = modelServer.generations()[0];
  expect(request?.headers).toMatchObject({
    authorization: `Bearer ${CREDENTIAL}-bearer-completed`,
    'x-api-key': `${CREDENTIAL}-key-completed`,
    cookie: `session=${CREDENTIAL}-cookie-completed`,
  });
  expect(request?.target).toContain(`${CREDENTIAL}-query-completed`);
  await expectGone('completed');
});

test('a request that never becomes a job leaves no body', async () => {
  for (const shape of ['small', 'large'] as const) {
    const response = await send('unknown', shape);
    await response.text();
    expect(response.status).toBe(404);
  }
  const broken = await send('broken', 'small', { headers: { 'Content-Encoding': 'gzip' } });
  await broken.text();
  expect(broken.status).toBe(400);
  await expectGone('unknown');
  await expectGone('broken');
});

test('the body of a failed job stays where it can be retried from', async () => {
  const takeBack = modelServer.fault(hangUp(), { times: Infinity });
  const responses = await Promise.all(SHAPES.map(async (shape) => send('failed', shape)));
  takeBack();
  for (const response of responses) {
    await response.text();
    expect(response.status).toBe(502);
    failedIds.push(String(response.headers.get('x-berth-job-id')));
  }
  await expectBodies('failed', true);
}, 60_000);

test('a running or waiting job has its body in its one place, a cancelled one nowhere', async () => {
  for (const shape of SHAPES) {
    const running = new AbortController();
    gate = modelServer.hold();
    const first = send('cancelled running', shape, { signal: running.signal });
    await gate.arrived;
    const waiting = new AbortController();
    const second = send('cancelled waiting', shape, { signal: waiting.signal });
    for (const scene of ['cancelled running', 'cancelled waiting']) {
      const word = promptOf(scene, shape);
      await eventually(
        async () => expect(placesOf(word, await stored())).toEqual([BODY_PLACE[shape]]),
        { what: `the body of the job to be ${scene}`, everyMs: 50 },
      );
    }
    waiting.abort();
    running.abort();
    await expect(first).rejects.toThrow();
    await expect(second).rejects.toThrow();
    await expectGone('cancelled waiting');
    await expectGone('cancelled running');
  }
  gate = modelServer.hold();
  open.push(send('waiting', 'small', { headers: { 'X-LlamaSwap-Priority': '100' } }));
  await gate.arrived;
  open.push(send('waiting', 'large'), send('waiting', 'multipart'));
  await eventually(async () => expectBodies('waiting', true), {
    what: 'three bodies',
    everyMs: 50,
  });
});

test('while jobs run, wait and have failed, no credential is anywhere in clear', async () => {
  const places = [...(await stored()), ...(await appendOnlyFiles()), ...(await shown())];
  expect(places.some(([place]) => place.startsWith('aof') && place.includes('.aof'))).toBe(true);
  expect(berth.output()).toContain('"level":"debug"');
  expect(placesOf(CREDENTIAL, places)).toEqual([]);
});

test('no prompt is in what Berth prints, measures or shows', async () => {
  expect(placesOf(PROMPT, await shown())).toEqual([]);
});

test('only small bodies ever pass through the append-only file of Redis', async () => {
  // It is a journal: it keeps the bodies of small jobs, ended ones too, until Redis rewrites it.
  expect(placesOf(`${PROMPT}-small`, await appendOnlyFiles())).not.toEqual([]);
  expect(placesOf(`${PROMPT}-large`, await appendOnlyFiles())).toEqual([]);
});

test('bodies of jobs that waited and of failed ones that were retried are gone once these completed', async () => {
  gate?.release();
  for (const response of (await Promise.all(open)) as Response[]) {
    await response.text();
    expect(response.status).toBe(200);
  }
  await expectGone('waiting');
  await expectBodies('failed', true);
  for (const id of failedIds) {
    const at = `${berth.url}/berth/board/api/queues/gpu/${id}/retry`;
    expect((await fetch(at, { method: 'PUT' })).status).toBe(204);
  }
  await expectGone('failed');
  const places = [...(await stored()), ...(await appendOnlyFiles()), ...(await shown())];
  expect(placesOf(PROMPT, await stored())).toEqual([]);
  expect(placesOf(CREDENTIAL, places)).toEqual([]);
});
