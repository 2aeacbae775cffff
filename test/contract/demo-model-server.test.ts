import { crc32, inflateSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import OpenAI, { toFile } from 'openai';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startDemoModelServer();
});

afterEach(() => server.close());

function post(
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  const sent = { 'Content-Type': 'application/json', ...headers };
  return fetch(server.url + path, { method: 'POST', headers: sent, body: JSON.stringify(body) });
}

async function getJson<T>(path: string): Promise<T> {
  return (await (await fetch(server.url + path)).json()) as T;
}

interface Running {
  running: { model: string; state: string }[];
}

const ask = { model: 'demo-chat', messages: [{ role: 'user' as const, content: 'why?' }] };

describe('answers', () => {
  test('equal requests get equal bytes, from another server too, and other requests get others', async () => {
    const second = await startDemoModelServer();
    const first = await (await post('/v1/chat/completions', ask)).text();
    const sent = { method: 'POST', headers: { 'Content-Type': 'application/json' } };
    const twin = await fetch(`${second.url}/v1/chat/completions`, {
      ...sent,
      body: JSON.stringify(ask),
    });
    expect(await twin.text()).toBe(first);
    const other = await post('/v1/chat/completions', { ...ask, seed: 2 });
    expect(await other.text()).not.toBe(first);
    await second.close();
  });

  test('the official client streams one token an event and gets the text it gets at once', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const whole = await client.completions.create({
      model: 'demo-chat',
      prompt: 'x',
      max_tokens: 9,
    });
    expect(whole.usage?.completion_tokens).toBe(9);
    expect(whole.choices[0]?.finish_reason).toBe('length');

    const stream = await client.chat.completions.create({
      ...ask,
      max_completion_tokens: 7,
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    const pieces = chunks.flatMap((chunk) => chunk.choices).map((choice) => choice.delta.content);
    expect(pieces.filter(Boolean)).toHaveLength(7);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('length');
    expect(chunks.at(-1)?.usage?.completion_tokens).toBe(7);
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  });

  test('a stream ends with the done marker and keeps its pace', async () => {
    await server.close();
    server = await startDemoModelServer({ tokensPerSecond: 50 });
    const response = await post('/v1/chat/completions', { ...ask, stream: true, max_tokens: 10 });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    const arrivals: number[] = [];
    let text = '';
    for await (const piece of response.body ?? []) {
      arrivals.push(performance.now());
      text += Buffer.from(piece as Uint8Array).toString();
    }
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(arrivals.length).toBeGreaterThanOrEqual(8);
    expect(Number(arrivals.at(-1)) - Number(arrivals[0])).toBeGreaterThan(150);
  });

  test('pictures are PNG files of the size asked for and depend on the prompt', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const order = { model: 'demo-image', prompt: 'a lane', size: '256x256' as const, n: 2 };
    const { data } = await client.images.generate(order);
    const again = await client.images.generate({ ...order, user: 'somebody else' });
    const [one, two] = (data ?? []).map((image) => Buffer.from(image.b64_json ?? '', 'base64'));
    expect(again.data?.[0]?.b64_json).toBe(data?.[0]?.b64_json);
    expect(one?.equals(two ?? Buffer.alloc(0))).toBe(false);
    expectPng(one ?? Buffer.alloc(0), 256, 256);
  });

  test('forms are answered by what they say, whatever boundary the client chose', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const transcribe = async (sound: string): Promise<string> => {
      const file = await toFile(Buffer.from(sound), 'a.wav');
      return (await client.audio.transcriptions.create({ model: 'demo-audio', file })).text;
    };
    expect(await transcribe('one')).toBe(await transcribe('one'));
    expect(await transcribe('one')).not.toBe(await transcribe('two'));
    const image = await toFile(Buffer.from('\r\n--not a boundary\r\n'), 'a.png');
    const edited = await client.images.edit({ model: 'demo-image', image, prompt: 'x' });
    expectPng(Buffer.from(edited.data?.[0]?.b64_json ?? '', 'base64'), 256, 256);
    expect(server.generations().map((request) => request.model)).toContain('demo-audio');
  });

  test('the official client reads embeddings in base64 as the numbers plain clients get', async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const input = ['one', 'two'];
    const decoded = await client.embeddings.create({ model: 'demo-embed', input });
    const plain = await client.embeddings.create({
      model: 'demo-embed',
      input,
      encoding_format: 'float',
    });
    expect(decoded.data).toHaveLength(2);
    expect(decoded.data[0]?.embedding).toEqual(plain.data[0]?.embedding);
    expect(Math.hypot(...(plain.data[1]?.embedding ?? []))).toBeCloseTo(1, 5);
  });

  test('a video is silent while it renders, then a file as long as its seconds', async () => {
    const order = { seconds: '2', demo_ms: 60 };
    const response = await post('/upstream/demo-video/v1/videos', order);
    expect(response.headers.get('content-type')).toBe('video/mp4');
    const file = Buffer.from(await response.arrayBuffer());
    expect(file.length).toBeGreaterThan(2 * 65_536);
    expect(file.length).toBe(Number(response.headers.get('content-length')));
    expect(file.toString('latin1', 4, 8)).toBe('ftyp');
    const [render] = server.generations();
    expect(Number(render?.endedAtMs) - Number(render?.gpuStartedAtMs)).toBeGreaterThanOrEqual(60);
  });

  test('bytes are as many as asked for, and wait for a reader that does not read', async () => {
    const path = '/upstream/demo-chat/bytes';
    const small = await post(`${path}?size=200000&chunk=7001`, {});
    const other = await post(`${path}?size=200000&chunk=65536`, {});
    const bytes = Buffer.from(await small.arrayBuffer());
    expect(bytes).toHaveLength(200_000);
    expect(bytes.equals(Buffer.from(await other.arrayBuffer()))).toBe(true);

    const large = await post(`${path}?size=100000000`, {});
    const reader = large.body?.getReader();
    await reader?.read();
    await post('/v1/chat/completions', ask);
    const record = server.record.find((request) => request.target.includes('100000000'));
    expect(record?.endedAtMs).toBeNull();
    await reader?.cancel();
    await eventually(() => record?.aborted === true, {
      what: 'the reader that left to be noticed',
    });
  });
});

function expectPng(file: Buffer, width: number, height: number): void {
  expect(file.toString('latin1', 1, 4)).toBe('PNG');
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at);
    const body = file.subarray(at + 4, at + 8 + length);
    expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(body));
    chunks.set(body.toString('latin1', 0, 4), body.subarray(4));
    at += 12 + length;
  }
  expect([...chunks.keys()]).toEqual(['IHDR', 'IDAT', 'IEND']);
  expect(chunks.get('IHDR')?.readUInt32BE(0)).toBe(width);
  expect(inflateSync(chunks.get('IDAT') ?? Buffer.alloc(0))).toHaveLength(height * (1 + width * 3));
}

describe('routes without a GPU', () => {
  test('the listings show aliases, and a model that loads as starting, then ready', async () => {
    await server.close();
    server = await startDemoModelServer({ coldLoadMs: 150 });
    const answer = post('/upstream/demo/org-chat/anything', {});
    const running = await eventually(
      async () => (await getJson<Running>('/running')).running[0] ?? null,
      { what: 'a model to load' },
    );
    expect(running).toMatchObject({ model: 'demo/org-chat', state: 'starting' });
    expect(await (await answer).json()).toMatchObject({
      model: 'demo/org-chat',
      path: '/anything',
    });
    expect(server.residentModel).toBe('demo/org-chat');
    expect((await getJson<Running>('/running')).running).toMatchObject([{ state: 'ready' }]);
    const { data } = await getJson<{ data: { id: string }[] }>('/v1/models');
    const ids = data.map((model) => model.id);
    expect(ids).toEqual(ids.toSorted());
    expect(data.find((model) => model.id === 'demo-chat')).toMatchObject({
      meta: { llamaswap: { type: 'alias', modelID: 'demo-chat-small' } },
      status: { value: 'unloaded' },
    });
  });

  test.each([
    ['POST', '/v1/chat/completions', '{}', 404, 'no model id could be identified'],
    ['POST', '/v1/chat/completions', '{"model":"x"}', 404, 'no router for requested model'],
    ['POST', '/upstream/x/y', '', 404, 'model not found'],
    ['POST', '/api/models/unload/x', '', 404, 'model not found'],
    ['GET', '/upstream/demo-chat/style.css', undefined, 409, 'not loaded'],
  ])('%s %s %s is refused with %d "%s"', async (method, path, body, status, message) => {
    const headers = { 'Content-Type': 'application/json' };
    const sent = { method, ...(body === undefined ? {} : { body }) };
    const response = await fetch(server.url + path, { ...sent, headers });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({
      src: 'llama-swap',
      error: expect.objectContaining({ message: expect.stringContaining(message), param: null }),
    });
    const plain = await fetch(server.url + path, {
      ...sent,
      headers: { ...headers, accept: 'text/plain' },
    });
    expect(await plain.text()).toMatch(/^llama-swap: /);
    expect(server.loads).toBe(0);
  });

  test.each([
    ['GET', '/v1/chat/completions', 405, 'POST'],
    ['POST', '/running', 405, 'GET, HEAD'],
    ['GET', '/v1/videos', 404, null],
  ])('%s %s is %d in plain text', async (method, path, status, allow) => {
    const response = await fetch(server.url + path, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([status, allow]);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
  });

  test.each([
    ['GET', '/', 302, '/ui'],
    ['GET', '/upstream/demo-chat?a=1', 301, '/upstream/demo-chat/?a=1'],
    ['POST', '/upstream/demo/org-chat', 308, '/upstream/demo/org-chat/'],
  ])('%s %s redirects with %d to %s', async (method, path, status, location) => {
    const response = await fetch(server.url + path, { method, redirect: 'manual' });
    expect([response.status, response.headers.get('location')]).toEqual([status, location]);
  });

  test('OPTIONS is answered alike on every path, and health without a key', async () => {
    await server.close();
    server = await startDemoModelServer({ apiKeys: ['sesame'] });
    const headers = { 'Access-Control-Request-Headers': 'x-a, x-b' };
    const options = await fetch(`${server.url}/nowhere`, { method: 'OPTIONS', headers });
    expect(options.status).toBe(204);
    expect(options.headers.get('access-control-allow-headers')).toBe('x-a, x-b');
    expect(await (await fetch(`${server.url}/health`)).text()).toBe('OK');
    const refused = await fetch(`${server.url}/v1/models`);
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="llama-swap"',
    ]);
    const basic = `Basic ${Buffer.from('me:sesame').toString('base64')}`;
    for (const shown of [
      { authorization: 'Bearer sesame' },
      { authorization: basic },
      { 'x-api-key': 'sesame' },
    ]) {
      expect((await fetch(`${server.url}/v1/models`, { headers: shown })).status).toBe(200);
    }
  });
});
