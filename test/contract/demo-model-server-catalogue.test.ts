import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { demoModels } from '../../src/demo-model-server/catalogue.ts';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startDemoModelServer({ concurrencyLimit: 2 });
});

afterEach(() => server.close());

interface Listed {
  readonly id: string;
  readonly meta: { readonly llamaswap: object };
}

function chat(model: string): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages: [], max_tokens: 2 }),
  });
}

async function listed(): Promise<Map<string, object>> {
  const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: Listed[] };
  return new Map(data.map(({ id, meta }) => [id, meta.llamaswap]));
}

const activate = (name: unknown): Promise<Response> =>
  fetch(`${server.url}/api/profiles/active`, { method: 'PUT', body: JSON.stringify({ name }) });

describe("a peer's model", () => {
  test('answers by its full and its bare id, loads nothing and takes no GPU', async () => {
    expect((await listed()).get('demo-peer/remote-chat')).toEqual({
      type: 'peer',
      peerID: 'demo-peer',
    });
    for (const id of ['demo-peer/remote-chat', 'remote-chat'])
      expect((await chat(id)).status).toBe(200);
    const path = `${server.url}/upstream/demo-peer/remote-embed/health`;
    expect((await fetch(path, { method: 'POST' })).status).toBe(200);
    expect([server.loads, server.generations()]).toEqual([0, []]);
    expect(await (await fetch(`${server.url}/running`)).json()).toEqual({ running: [] });
  });

  test('has no bare id when two peers have it', async () => {
    await server.close();
    const models = [{ id: 'twin', kind: 'chat', name: '', aliases: [] }] as const;
    const peers = [
      { id: 'a', models },
      { id: 'b', models },
    ];
    server = await startDemoModelServer({ peers });
    expect([(await chat('twin')).status, (await chat('b/twin')).status]).toEqual([404, 200]);
  });
});

describe('a profile', () => {
  test('replaces ids while it is active, in bodies and in paths, and is listed', async () => {
    expect((await chat('demo-any-chat')).status).toBe(404);
    expect(await (await activate('quality')).json()).toEqual({ active: 'quality' });
    expect((await listed()).get('demo-any-chat')).toEqual({ type: 'profile' });
    expect((await chat('demo-any-chat')).status).toBe(200);
    expect(server.residentModel).toBe('demo-chat-large');
    expect((await fetch(`${server.url}/upstream/demo-any-chat/health`)).status).toBe(200);
    expect((await activate(null)).status).toBe(200);
    expect((await chat('demo-any-chat')).status).toBe(404);
  });

  test('switches an id off with a pin to nothing', async () => {
    await server.close();
    const profiles = [{ id: 'off', description: '', pins: { 'demo-chat-small': null } }];
    server = await startDemoModelServer({ profiles });
    await activate('off');
    expect((await chat('demo-chat-small')).status).toBe(404);
    expect((await fetch(`${server.url}/upstream/demo-chat-small/health`)).status).toBe(404);
  });

  test.each([
    [undefined, 400],
    [7, 400],
    ['no-such-profile', 404],
  ])('called %p is refused', async (name, status) => {
    expect((await activate(name)).status).toBe(status);
  });
});

test('an unlisted model is served and is in the model status alone', async () => {
  await server.close();
  server = await startDemoModelServer({
    models: demoModels.map((model) => ({ ...model, unlisted: model.id === 'demo-chat-small' })),
  });
  expect((await listed()).has('demo-chat-small')).toBe(false);
  expect((await chat('demo-chat-small')).status).toBe(200);
});

test('one request more than a model may have, waiting ones included, is refused; others are not', async () => {
  const gate = server.hold();
  const running = chat('demo-chat-small');
  await gate.arrived;
  const waiting = chat('demo-chat-large');
  const alsoWaiting = chat('demo-chat-large');
  await eventually(() => server.attempts().length === 3, { what: 'three requests' });
  const refused = await chat('demo-chat-large');
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
  expect(await refused.json()).toEqual({
    src: 'llama-swap',
    error: {
      message: 'Too many requests',
      type: 'rate_limit_error',
      param: null,
      code: 'concurrency_limit',
    },
  });
  expect((await chat('remote-chat')).status).toBe(200);
  gate.release();
  const statuses = (await Promise.all([running, waiting, alsoWaiting])).map(({ status }) => status);
  expect(statuses).toEqual([200, 200, 200]);
  expect((await chat('demo-chat-large')).status).toBe(200);
});
