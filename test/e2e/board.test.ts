import { createRequire } from 'node:module';
import { request as httpRequest } from 'node:http';
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

const PROMPT = 'canary-prompt-of-the-board';
const CREDENTIAL = 'canary-credential-of-the-board';
const BOARD = '/berth/board';

let modelServer: ScriptedModelServer;
let berth: BerthSystem;
let redis: Redis;
/** Holds the running job, so that the others wait. */
let gate: Gate;
let failedId: string;
let completedId: string;
let waitingId: string;
const answers: Promise<Response>[] = [];

beforeAll(async () => {
  modelServer = await startDemoModelServer();
  berth = await BerthSystem.start({
    modelServerUrl: modelServer.url,
    // What a job shows of its place changes with each pass, whatever the board does.
    env: {
      SCORER_INTERVAL_SECONDS: '3600',
      BERTH_CONFIG: new URL('../support/quick-retries.config.json', import.meta.url).pathname,
    },
  });
  redis = new Redis(berth.redis.socket);
  const completed = await chat(PROMPT);
  completedId = String(completed.headers.get('x-berth-job-id'));
  await completed.text();
  modelServer.fault(hangUp(), { times: 5 });
  const failed = await chat(PROMPT, { 'X-LlamaSwap-Priority': 'batch' });
  failedId = String(failed.headers.get('x-berth-job-id'));
  if (failed.status !== 502) throw new Error(`the job should fail, not ${await failed.text()}`);
  gate = modelServer.hold();
  answers.push(chat(PROMPT));
  await gate.arrived;
  answers.push(chat(PROMPT, { 'X-LlamaSwap-Priority': '100' }));
  const waiting = await eventually(
    async () => (await redis.zrange('{berth}:gpu:gpu:prioritized', '0', '-1'))[0] ?? null,
    { what: 'a waiting job' },
  );
  waitingId = waiting;
}, 60_000);

afterAll(async () => {
  gate.release();
  await Promise.allSettled(answers);
  redis.disconnect();
  await berth.stop();
  await modelServer.close();
});

async function chat(prompt: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${berth.url}/v1/chat/completions?key=${CREDENTIAL}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Authorization: `Bearer ${CREDENTIAL}`,
      ...headers,
    },
    body: JSON.stringify({
      model: 'demo-chat-small',
      messages: [{ role: 'user', content: prompt }],
      max_tokens: 3,
    }),
  });
}

interface Reply {
  status: number;
  text: string;
}

/** Like fetch, but with any header, Host and Sec-Fetch-Site among them. */
async function ask(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: object,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      `${berth.url}${BOARD}${path}`,
      { method, headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    request.on('error', reject);
    request.end(body && JSON.stringify(body));
  });
}

/** Everything of the gpu queue that a write could change, but not what time alone changes (a lock, an event). */
async function queueState(): Promise<unknown> {
  const queue = '{berth}:gpu:gpu:';
  const lists = ['wait', 'paused', 'active'];
  const sets = ['prioritized', 'delayed', 'failed', 'completed', 'repeat'];
  const jobs = [failedId, completedId, waitingId];
  return {
    lists: await Promise.all(lists.map(async (name) => redis.lrange(queue + name, 0, -1))),
    sets: await Promise.all(
      sets.map(async (name) => redis.zrange(queue + name, '0', '-1', 'WITHSCORES')),
    ),
    jobs: await Promise.all(jobs.map(async (id) => redis.hgetall(queue + id))),
    meta: await redis.hgetall(`${queue}meta`),
  };
}

interface BoardRoute {
  method: string | string[];
  route: string | string[];
}

/** Bull Board's own list of what its server does, so that a later version's additions are tried too. */
const { appRoutes } = createRequire(createRequire(import.meta.url).resolve('@bull-board/api'))(
  './routes.js',
) as { appRoutes: { api: BoardRoute[] } };

const SINGLE_RETRY = '/api/queues/:queueName/:jobId/retry';

const writes = appRoutes.api
  .flatMap(({ method, route }) =>
    [method]
      .flat()
      .flatMap((verb) => [route].flat().map((path) => [verb.toUpperCase(), path] as const)),
  )
  .filter(([verb, path]) => verb !== 'GET' && path !== SINGLE_RETRY);

test('the board shows jobs of all states without prompt or credential', async () => {
  const pages = await Promise.all([
    ask('GET', '/api/queues?activeQueue=gpu&status=latest&page=1&jobsPerPage=50'),
    ...[failedId, completedId, waitingId].flatMap((id) =>
      ['', '/logs', '/flow'].map(async (part) => ask('GET', `/api/queues/gpu/${id}${part}`)),
    ),
  ]);
  const text = pages.map((page) => page.text).join('\n');
  for (const id of [failedId, completedId, waitingId]) expect(text).toContain(id);
  expect(pages[0].status).toBe(200);
  expect(text).toContain('demo-chat-small');
  expect(text).not.toContain(PROMPT);
  expect(text).not.toContain(CREDENTIAL);
});

test('the board tells nothing of Redis itself', async () => {
  const reply = await ask('GET', '/api/redis/stats');
  expect(reply.status).toBe(403);
});

test('the list of writes of Bull Board is the one this file was written against, or longer', () => {
  const known = ['add', 'promote', 'pause', 'resume', 'empty', 'obliterate', 'concurrency'].map(
    (name) => `/api/queues/:queueName/${name}`,
  );
  const single = ['clean', 'promote', 'update-data', 'delay', 'priority'].map(
    (name) => `/api/queues/:queueName/:jobId/${name}`,
  );
  expect(writes.map(([, path]) => path)).toEqual(expect.arrayContaining([...known, ...single]));
});

test.each(writes)('%s %s is refused by the server and changes nothing', async (method, path) => {
  const before = await queueState();
  for (const jobId of [failedId, waitingId]) {
    for (const queueStatus of ['failed', 'completed', 'delayed']) {
      const target = path
        .replace(':queueName', 'gpu')
        .replace(':jobId', jobId)
        .replace(':queueStatus', queueStatus)
        .replace(':schedulerId', 'scorer');
      const body = { data: {}, name: 'x', priority: 1, delay: 1, force: true, concurrency: 2 };
      const reply = await ask(method, target, { 'Sec-Fetch-Site': 'same-origin' }, body);
      expect([target, reply.status]).toEqual([target, 403]);
      expect(JSON.parse(reply.text)).toMatchObject({ src: 'berth', error: { code: 'forbidden' } });
    }
  }
  expect(await queueState()).toEqual(before);
});

test.each([
  ['the retry of all failed jobs', 'PUT', '/api/queues/gpu/retry/failed'],
  ['a state in the place of the id', 'PUT', '/api/queues/gpu/retry/retry/failed'],
  ['a clean-up that looks like a retry', 'PUT', '/api/queues/gpu/clean/retry'],
  ['another queue', 'PUT', '/api/queues/scorer/FAILED/retry'],
  ['an encoded slash', 'PUT', '/api/queues/gpu/FAILED%2Fretry'],
  ['an encoded way round', 'PUT', '/api/queues/gpu/FAILED/%70romote'],
  ['capital letters', 'PUT', '/API/queues/gpu/FAILED/PROMOTE'],
  ['a slash at the end', 'PUT', '/api/queues/gpu/FAILED/promote/'],
  ['another method', 'POST', '/api/queues/gpu/FAILED/retry'],
  ['a method nobody has', 'DELETE', '/api/queues/gpu/FAILED'],
])('refuses %s and changes nothing', async (_what, method, path) => {
  const before = await queueState();
  const reply = await ask(method, path.replace('FAILED', failedId));
  expect(reply.status).toBe(403);
  expect(await queueState()).toEqual(before);
});

test.each([
  ['a page of another site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['a page of another port', { 'Sec-Fetch-Site': 'same-site' }],
  ['a foreign Host', { Host: 'board.example.net' }],
  ['a Host that only begins like ours', { Host: 'localhost.example.net' }],
  ['a proxy in between', { 'X-Forwarded-For': '203.0.113.7' }],
  ['a proxy that says Forwarded', { Forwarded: 'for=203.0.113.7' }],
])('%s can neither look nor retry', async (_what, headers) => {
  const before = await queueState();
  for (const [method, path] of [
    ['GET', '/api/queues?activeQueue=gpu'],
    ['GET', `/api/queues/gpu/${failedId}`],
    ['GET', '/'],
    ['PUT', `/api/queues/gpu/${failedId}/retry`],
    ['PUT', `/api/queues/gpu/${failedId}/retry/failed`],
  ] as const) {
    const reply = await ask(method, path, headers);
    expect([path, reply.status]).toEqual([path, 403]);
    expect(reply.text).not.toContain('demo-chat-small');
  }
  expect(await queueState()).toEqual(before);
});

test('a link on another site opens the page, but never the data or a retry', async () => {
  const link = {
    'Sec-Fetch-Site': 'cross-site',
    'Sec-Fetch-Mode': 'navigate',
    'Sec-Fetch-Dest': 'document',
  };
  expect((await ask('GET', '/queue/gpu', link)).status).toBe(200);
  expect((await ask('GET', '/api/queues', link)).status).toBe(403);
  expect((await ask('PUT', `/api/queues/gpu/${failedId}/retry`, link)).status).toBe(403);
});

test('a job that has not failed is not run again', async () => {
  const before = await queueState();
  for (const id of [waitingId, completedId]) {
    const reply = await ask('PUT', `/api/queues/gpu/${id}/retry`);
    expect(reply.status).toBeGreaterThanOrEqual(400);
  }
  expect(await queueState()).toEqual(before);
});

/** The body the failed job was sent with is known by its hash alone. */
async function runsOf(jobId: string): Promise<number> {
  const data = await redis.hget(`{berth}:gpu:gpu:${jobId}`, 'data');
  const { bodySha256 } = JSON.parse(data ?? '{}') as { bodySha256: string };
  return modelServer.generations().filter((one) => one.bodySha256 === bodySha256).length;
}

test('a failed job that is retried runs again at the model server and completes', async () => {
  gate.release();
  for (const answer of await Promise.all(answers)) await answer.text();
  const before = await runsOf(failedId);
  const reply = await ask('PUT', `/api/queues/gpu/${failedId}/retry`, {
    'Sec-Fetch-Site': 'same-origin',
  });
  expect(reply.status).toBe(204);
  await eventually(async () => (await stateOf(failedId)) === 'completed', {
    what: 'the retried job to complete',
  });
  expect(await runsOf(failedId)).toBe(before + 1);
  expect(modelServer.overlaps).toBe(0);
});

test('the path older Bull Boards retry by works too, after the model server was down for long', async () => {
  await modelServer.refuseConnections();
  const failed = await chat('down', { 'X-LlamaSwap-Priority': '-100' });
  expect(failed.status).toBe(502);
  const id = String(failed.headers.get('x-berth-job-id'));
  expect(await stateOf(id)).toBe('failed');
  await modelServer.open();
  const reply = await ask('PUT', `/api/queues/gpu/${id}/retry/failed`);
  expect(reply.status).toBe(204);
  await eventually(async () => (await stateOf(id)) === 'completed', {
    what: 'the retried job to complete',
  });
  expect(await runsOf(id)).toBe(1);
});

async function stateOf(jobId: string): Promise<string> {
  const reply = await ask('GET', `/api/queues/gpu/${jobId}`);
  return (JSON.parse(reply.text) as { status: string }).status;
}
