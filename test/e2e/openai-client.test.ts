import { afterAll, beforeAll, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer, type ScriptedModelServer } from '../support/demo-model-server.ts';

/** Long enough that a token and the next one are apart for everybody to see. */
const TOKEN_MS = 150;

let modelServer: ScriptedModelServer;
let berth: BerthSystem;
let direct: OpenAI;
let through: OpenAI;

beforeAll(async () => {
  modelServer = await startDemoModelServer({ tokensPerSecond: 1000 / TOKEN_MS });
  berth = await BerthSystem.start({ modelServerUrl: modelServer.url });
  const client = (url: string): OpenAI =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-anything', maxRetries: 0 });
  direct = client(modelServer.url);
  through = client(berth.url);
});

afterAll(async () => {
  await berth.stop();
  await modelServer.close();
});

const chat = {
  model: 'demo-chat-small',
  messages: [{ role: 'user' as const, content: 'Tell me of the harbour.' }],
  max_tokens: 6,
};

interface Arrival {
  chunk: OpenAI.Chat.Completions.ChatCompletionChunk;
  /** Whether the model server was still at work when it came. */
  beforeEnd: boolean;
  atMs: number;
}

async function streamed(client: OpenAI): Promise<Arrival[]> {
  const arrivals: Arrival[] = [];
  const options = { stream: true, stream_options: { include_usage: true } } as const;
  for await (const chunk of await client.chat.completions.create({ ...chat, ...options })) {
    const beforeEnd = modelServer.generations().at(-1)?.endedAtMs === null;
    arrivals.push({ chunk, beforeEnd, atMs: performance.now() });
  }
  return arrivals;
}

test('a streamed chat gives the official client the chunks it gets from the model server', async () => {
  const expected = (await streamed(direct)).map(({ chunk }) => chunk);
  const got = (await streamed(through)).map(({ chunk }) => chunk);
  expect(got).toEqual(expected);
  expect(got.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')).not.toBe('');
  expect(got.at(-1)?.usage?.completion_tokens).toBe(chat.max_tokens);
});

test('chunks of a stream arrive one by one, each before the next one is made', async () => {
  const arrivals = await streamed(through);
  const tokens = arrivals.filter(({ chunk }) => Boolean(chunk.choices[0]?.delta.content));
  expect(tokens).toHaveLength(chat.max_tokens);
  // Token k is made k x TOKEN_MS after the start: one that came before the end of the fifth was not held back.
  expect(tokens.slice(0, -1).every(({ beforeEnd }) => beforeEnd)).toBe(true);
  const started = Number(arrivals[0]?.atMs);
  tokens.forEach(({ atMs }, index) => {
    // The moment the next token is made, as the first event (sent at the start) tells it.
    expect(atMs - started).toBeLessThan((index + 2) * TOKEN_MS);
    expect(atMs - started).toBeGreaterThan((index + 1) * TOKEN_MS - TOKEN_MS / 2);
  });
});

test('a chat in one piece gives the official client what it gets from the model server', async () => {
  const expected = await direct.chat.completions.create(chat);
  const got = await through.chat.completions.create(chat);
  expect(got).toEqual(expected);
  expect(got.choices[0]?.message.content).not.toBe('');
});

test('an image gives the official client what it gets from the model server', async () => {
  const order = { model: 'demo-image', prompt: 'a lighthouse', size: '256x256' as const };
  const expected = await direct.images.generate({ ...order, response_format: 'b64_json' });
  const got = await through.images.generate({ ...order, response_format: 'b64_json' });
  expect(got).toEqual(expected);
  const picture = Buffer.from(got.data?.[0]?.b64_json ?? '', 'base64');
  expect(picture.subarray(1, 4).toString()).toBe('PNG');
});

test('an error of the model reaches the official client as from the model server', async () => {
  const order = { ...chat, max_tokens: -1 };
  const failureOf = async (client: OpenAI): Promise<unknown> =>
    client.chat.completions.create(order).then(
      () => 'no error',
      (error: unknown) =>
        error instanceof OpenAI.APIError
          ? { status: error.status as unknown, body: error.error as unknown }
          : error,
    );
  const expected = await failureOf(direct);
  expect(expected).toMatchObject({ status: 400 });
  expect(await failureOf(through)).toEqual(expected);
});
