import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import { BerthSystem, startBerthProcess } from '../support/berth-system.ts';
import { startDemoModelServer, type ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const TOKEN = 'canary-of-a-webhook';
const root = fileURLToPath(new URL('../../', import.meta.url));

let modelServer: ScriptedModelServer;
let receiver: WebhookReceiver;
let berth: BerthSystem;
let redis: Redis;

beforeAll(async () => {
  modelServer = await startDemoModelServer();
  receiver = await WebhookReceiver.open();
  berth = await BerthSystem.start({
    modelServerUrl: modelServer.url,
    env: { WEBHOOK_ALLOW_PRIVATE: '1', LOG_LEVEL: 'debug' },
  });
  redis = new Redis(berth.redis.socket);
});

afterAll(async () => {
  redis.disconnect();
  await berth.stop();
  await receiver.close();
  await modelServer.close();
});

const asked = (): number => modelServer.record.filter(({ gpu }) => gpu).length;

async function ask(webhook: string, url = berth.url): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Berth-Webhook': webhook },
    body: JSON.stringify({
      model: 'demo-chat-small',
      messages: [{ role: 'user', content: 'say nothing of this' }],
    }),
  });
}

test('the end of a job is posted, signed with the secret that the command prints', async () => {
  const answer = await ask(receiver.url(`/in?token=${TOKEN}`));
  const id = answer.headers.get('x-berth-job-id');
  await answer.text();
  expect(answer.status).toBe(200);
  await eventually(() => receiver.calls.length === 1, { what: 'the event', timeoutMs: 10_000 });
  const [call] = receiver.calls;
  expect(call?.path).toBe(`/in?token=${TOKEN}`);

  const command = [path.join(root, 'dist/src/cli/main.js'), 'webhooks', 'secret'];
  const printed = spawnSync(process.execPath, command, {
    env: { PATH: process.env.PATH ?? '', DATA_DIR: berth.dataDir },
    encoding: 'utf8',
  });
  const headers = call?.headers as Record<string, string>;
  const event = new Webhook(printed.stdout.trim()).verify(call?.body ?? '', headers);
  expect(event).toMatchObject({
    type: 'job.completed',
    data: {
      id,
      object: 'job',
      state: 'completed',
      model: 'demo-chat-small',
      error: null,
      attempts: 1,
      film: null,
    },
  });
  expect(call?.body).not.toContain('say nothing of this');
});

test('the address reaches neither Redis in the clear, nor the log, nor the model server', async () => {
  expect(JSON.stringify(modelServer.record.map(({ rawHeaders }) => rawHeaders))).not.toContain(
    TOKEN,
  );
  await eventually(() => berth.output().includes('webhook.delivered'), { what: 'the log line' });
  expect(berth.output()).not.toContain(TOKEN);
  const folder = path.join(path.dirname(berth.redis.socket), 'appendonlydir');
  const written = await Promise.all(
    (await readdir(folder)).map(async (name) => readFile(path.join(folder, name), 'latin1')),
  );
  expect(written.join('')).toContain('outbox');
  expect(written.join('')).not.toContain(TOKEN);
  await eventually(async () => (await redis.llen('{berth}:gpu:outbox')) === 0, {
    what: 'the outbox to be empty',
  });
});

test('a delivery that was given up is on the board, without its address, and can be made again from there', async () => {
  receiver.answer = (response) => void response.writeHead(410).end();
  await (await ask(receiver.url(`/gone?token=${TOKEN}`))).text();
  const calls = () => receiver.calls.filter(({ path: at }) => at.startsWith('/gone'));
  const [call] = await eventually(() => calls().length > 0 && calls(), { what: 'the event' });
  const id = String(call?.headers['webhook-id']);
  const delivery = `${berth.url}/berth/board/api/queues/webhooks/${id}`;
  const shown = await eventually(
    async () => {
      const text = await (await fetch(delivery)).text();
      return (JSON.parse(text) as { status: string }).status === 'failed' && text;
    },
    { what: 'the failed delivery' },
  );
  expect(shown).toContain('demo-chat-small');
  expect(shown).not.toContain(TOKEN);
  const stored = await redis.hget(`{berth}:gpu:webhooks:${id}`, 'data');
  const { entry } = JSON.parse(stored ?? '{}') as { entry: string };
  expect(shown).not.toContain((JSON.parse(entry) as { hook: string }).hook);
  expect((await fetch(`${delivery}/promote`, { method: 'PUT' })).status).toBe(403);
  receiver.answer = (response) => void response.writeHead(204).end();
  expect((await fetch(`${delivery}/retry`, { method: 'PUT' })).status).toBe(204);
  await eventually(() => calls().length === 2, { what: 'the second attempt', timeoutMs: 10_000 });
  expect(calls()[1]?.headers['webhook-id']).toBe(id);
});

test("of a film each shot is told of, at its own address or the film's, which go no further", async () => {
  const told = (name: string) => receiver.calls.filter(({ path }) => path.startsWith(`/${name}?`));
  const shot = (webhook?: string) => ({
    path: '/v1/chat/completions',
    headers: webhook === undefined ? {} : { 'x-berth-webhook': webhook },
    body: { model: 'demo-chat-small', messages: [{ role: 'user', content: 'a shot' }] },
  });
  const made = await fetch(`${berth.url}/berth/films`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-Berth-Webhook': receiver.url(`/film?token=${TOKEN}`),
    },
    body: JSON.stringify({ shots: [shot(), shot(receiver.url(`/own?token=${TOKEN}`)), shot()] }),
  });
  expect(made.status).toBe(202);
  const { id } = (await made.json()) as { id: string };
  await eventually(() => told('film').length === 2 && told('own').length === 1, {
    what: 'the three events',
    timeoutMs: 10_000,
  });
  const places = (name: string) =>
    told(name).map(({ body }) => (JSON.parse(body) as { data: { film: unknown } }).data.film);
  expect(places('own')).toEqual([{ id, shot: 2 }]);
  expect(places('film')).toEqual(
    expect.arrayContaining([
      { id, shot: 1 },
      { id, shot: 3 },
    ]),
  );
  expect(JSON.stringify(modelServer.record.map(({ rawHeaders }) => rawHeaders))).not.toContain(
    TOKEN,
  );
});

test.each(['ftp://hooks.example/', 'hooks.example', 'http://a:b@hooks.example/', ''])(
  'an address that reads "%s" is a 400, and no job is made',
  async (address) => {
    const before = asked();
    const answer = await ask(address);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { code: 'bad_request', param: 'X-Berth-Webhook' },
    });
    expect(asked()).toBe(before);
  },
);

test('private addresses are refused unless the operator allows them', async () => {
  const env = { ...berth.env(), WEBHOOK_ALLOW_PRIVATE: '0', PORT: '0' };
  const strict = startBerthProcess('ingress', env);
  try {
    const url = `http://127.0.0.1:${await strict.port}`;
    await eventually(async () => (await fetch(`${url}/berth/readyz`)).status === 200, {
      what: 'the strict ingress',
      timeoutMs: 15_000,
    });
    for (const address of [receiver.url(), 'http://[::ffff:7f00:1]/', 'http://169.254.169.254/']) {
      const answer = await ask(address, url);
      expect(answer.status).toBe(400);
      await answer.text();
    }
  } finally {
    await strict.kill();
  }
});
