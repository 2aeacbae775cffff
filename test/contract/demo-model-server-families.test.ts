import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startDemoModelServer();
});

afterEach(() => server.close());

const model = 'demo-chat-small';

function post(path: string, body: unknown): Promise<Response> {
  return fetch(server.url + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
}

async function json<T>(answer: Promise<Response>): Promise<T> {
  const response = await answer;
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe("OpenAI's responses", () => {
  const responses = () =>
    new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0 }).responses;

  test('a stream has the events of the official client and adds up to a response', async () => {
    const order = { model, input: 'why?', stream: true } as const;
    const events = await all(await responses().create(order));
    const kinds = events.map(({ type }) => type);
    expect(kinds.filter((type) => type !== 'response.output_text.delta')).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ]);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()]);
    const text = events.map((event) =>
      event.type === 'response.output_text.delta' ? event.delta : '',
    );
    const last = events.at(-1);
    expect(last?.type === 'response.completed' && last.response).toMatchObject({
      output: [{ content: [{ text: text.join('') }] }],
      usage: { output_tokens: text.filter(Boolean).length },
    });
  });

  test('a limit is kept to the token and leaves the response incomplete', async () => {
    const whole = await responses().create({ model, input: 'why?', max_output_tokens: 5 });
    expect([whole.status, whole.incomplete_details, whole.usage?.output_tokens]).toEqual([
      'incomplete',
      { reason: 'max_output_tokens' },
      5,
    ]);
    expect(whole.output_text.split(' ')).toHaveLength(5);
    expect((await post('/v1/responses', { model, max_output_tokens: 0 })).status).toBe(400);
  });
});

describe("Anthropic's messages", () => {
  const messages = () =>
    new Anthropic({ baseURL: server.url, apiKey: 'none', maxRetries: 0 }).messages;
  const order = { model, messages: [{ role: 'user' as const, content: 'why?' }], max_tokens: 4 };

  test('a stream has a ping behind its beginning and adds up to a message', async () => {
    const text = await (await post('/v1/messages', { ...order, stream: true })).text();
    const kinds = [...text.matchAll(/^event: (\w+)$/gm)].map(([, kind]) => kind);
    expect(kinds).toEqual([
      'message_start',
      'content_block_start',
      'ping',
      ...new Array<string>(4).fill('content_block_delta'),
      'content_block_stop',
      'message_delta',
      'message_stop',
    ]);
    const message = await messages().stream(order).finalMessage();
    expect([message.stop_reason, message.usage.output_tokens]).toEqual(['max_tokens', 4]);
  });

  test('a high limit is no wish, and the tokens counted are those of the usage', async () => {
    const message = await messages().create({ ...order, max_tokens: 4096 });
    expect(message.stop_reason).toBe('end_turn');
    const { model: asked, messages: list } = order;
    const count = await messages().countTokens({ model: asked, messages: list });
    expect(count.input_tokens).toBe(message.usage.input_tokens);
    await expect(messages().create({ ...order, max_tokens: 0 })).rejects.toThrow('max_tokens');
  });
});

describe("llama-server's own", () => {
  test('completion streams to a last event without a done marker; infill answers a list', async () => {
    const order = { model, prompt: 'Once', n_predict: 3 };
    const whole = await json<{ content: string; stop_type: string }>(post('/completion', order));
    expect([whole.content.split(' ').length, whole.stop_type]).toEqual([3, 'limit']);
    const text = await (await post('/completion', { ...order, stream: true })).text();
    const events = text
      .trim()
      .split('\n\n')
      .map((line) => JSON.parse(line.slice(6)) as { stop: boolean });
    expect(events.map(({ stop }) => stop)).toEqual([false, false, false, true]);
    const list = await json<unknown[]>(
      post('/infill', { model, input_prefix: 'a', n_predict: -1 }),
    );
    expect(list).toMatchObject([{ stop: true, stop_type: 'eos' }]);
  });

  test.each(['/v1/rerank', '/v1/reranking', '/rerank', '/reranking', '/v/rerank', '/v/reranking'])(
    '%s gives every document its score, best first',
    async (path) => {
      const documents = ['one', 'two', 'three'];
      const answer = await json<{ results: { index: number; relevance_score: number }[] }>(
        post(path, { model, query: 'q', documents, top_n: 2 }),
      );
      const [best, next] = answer.results;
      expect(Number(best?.relevance_score)).toBeGreaterThan(Number(next?.relevance_score));
      expect(answer.results).toHaveLength(2);
      const bare = await json<{ index: number }[]>(
        post(path, { model, query: 'q', texts: documents }),
      );
      expect(bare.map(({ index }) => index).slice(0, 2)).toEqual([best?.index, next?.index]);
      expect((await post(path, { model, query: 'q' })).status).toBe(400);
    },
  );

  test('props say what the model was started with', async () => {
    const answer = await json<object>(fetch(`${server.url}/props?model=demo-chat`));
    expect(answer).toMatchObject({
      model_alias: 'demo-chat',
      default_generation_settings: { n_ctx: 8192 },
    });
    expect(server.residentModel).toBe(model);
  });
});

describe('sound', () => {
  const order = { model: 'demo-audio', voice: 'alloy', input: 'Ahoy there' };

  test('speech is a WAV file in chunks, as long as its text, other for another voice', async () => {
    const response = await post('/v1/audio/speech', order);
    expect(response.headers.get('content-type')).toBe('audio/wav');
    expect(response.headers.get('transfer-encoding')).toBe('chunked');
    const file = Buffer.from(await response.arrayBuffer());
    expect([file.toString('latin1', 0, 4), file.readUInt32LE(4)]).toEqual([
      'RIFF',
      file.length - 8,
    ]);
    expect(file.readUInt32LE(40)).toBe(file.length - 44);
    const raw = await (
      await post('/v1/audio/speech', { ...order, response_format: 'pcm' })
    ).arrayBuffer();
    expect(Buffer.from(raw).equals(file.subarray(44))).toBe(true);
    const other = await (await post('/v1/audio/speech', { ...order, voice: 'echo' })).arrayBuffer();
    expect(Buffer.from(other).equals(file)).toBe(false);
    expect((await post('/v1/audio/speech', { ...order, response_format: 'mp3' })).status).toBe(400);
  });

  test('voices are the same by GET and POST, and of one model', async () => {
    const asked = await json(fetch(`${server.url}/v1/audio/voices?model=demo-audio`));
    expect(await json(post('/v1/audio/voices', { model: 'demo-audio' }))).toEqual(asked);
    expect(await json(post('/v1/audio/voices', { model }))).not.toEqual(asked);
    expect(server.loads).toBe(2);
  });

  test('a task of audio.cpp reaches the model without its prefix', async () => {
    const request = { text: 'Ahoy there', voice: 'alloy' };
    const task = { model: 'demo-audio', request };
    const { audio } = await json<{ audio: string }>(post('/audioapi/v1/tasks/run', task));
    const spoken = await (await post('/v1/audio/speech', order)).arrayBuffer();
    expect(audio).toBe(Buffer.from(spoken).toString('base64'));
    const same = await json<{ audio: string }>(post('/upstream/demo-audio/v1/tasks/run', task));
    expect(same.audio).toBe(audio);
    expect((await post('/v1/tasks/run', task)).status).toBe(404);
  });
});

describe("stable-diffusion's own", () => {
  test('pictures depend on what was asked and given; loras are listed', async () => {
    const order = { model: 'demo-image', prompt: 'a pier', width: 64, height: 32, batch_size: 2 };
    const { images } = await json<{ images: string[] }>(post('/sdapi/v1/txt2img', order));
    const [one = '', two] = images;
    expect(one).not.toBe(two);
    expect(Buffer.from(one, 'base64').readUInt32BE(16)).toBe(64);
    const from = { ...order, init_images: [one] };
    const edited = await json<{ images: string[] }>(post('/sdapi/v1/img2img', from));
    expect(edited.images[0]).not.toBe(one);
    expect((await post('/sdapi/v1/img2img', order)).status).toBe(400);
    expect((await post('/sdapi/v1/txt2img', { ...order, width: 0 })).status).toBe(400);
    const loras = await json<object[]>(fetch(`${server.url}/sdapi/v1/loras?model=demo-image`));
    expect(loras).toHaveLength(2);
  });
});

test.each([
  ['/v/chat/completions', '/chat/completions', { messages: [] }],
  ['/v/completions', '/completions', { prompt: 'x' }],
  ['/v/responses', '/responses', { input: 'x' }],
  ['/v/messages', '/messages', { messages: [], max_tokens: 3 }],
  ['/v/messages/count_tokens', '/messages/count_tokens', { messages: [] }],
  ['/v/embeddings', '/embeddings', { input: 'x' }],
])('%s is answered as the model answers %s', async (path, own, fields) => {
  const order = { model, ...fields };
  const answer = await (await post(path, order)).text();
  expect(answer).toBe(await (await post(`/upstream/${model}${own}`, order)).text());
  expect(server.loads).toBe(1);
});

test.each([
  ['PUT', '/v1/audio/voices', 'GET, HEAD, POST'],
  ['POST', '/props', 'GET, HEAD'],
  ['GET', '/v/messages', 'POST'],
  ['GET', '/audioapi/v1/tasks/run', 'POST'],
])('%s %s is a 405 that allows %s', async (method, path, allow) => {
  const response = await fetch(server.url + path, { method });
  expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
});

test.each([
  ['POST', '/v1/responses', { input: 'x' }],
  ['POST', '/v1/messages', { messages: [], max_tokens: 9 }],
  ['POST', '/completion', { prompt: 'x' }],
  ['POST', '/v1/audio/speech', { input: 'x', demo_ms: 60_000 }],
  ['POST', '/sdapi/v1/txt2img', { demo_ms: 60_000 }],
  ['POST', '/audioapi/v1/tasks/run', { request: {}, demo_ms: 60_000 }],
  ['GET', '/sdapi/v1/loras?model=demo-chat', undefined],
])('%s %s loads its model, and a fault strikes it as any other', async (method, path, fields) => {
  server.fault({ kind: 'hold', until: Promise.resolve({ kind: 'hang_up' }) });
  const headers = { 'Content-Type': 'application/json' };
  const body =
    fields === undefined ? {} : { body: JSON.stringify({ model, stream: true, ...fields }) };
  await expect(fetch(server.url + path, { method, headers, ...body })).rejects.toThrow();
  expect([server.residentModel, server.generations().length]).toEqual([model, 1]);
});
