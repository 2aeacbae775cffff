import { execFile, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import Anthropic from '@anthropic-ai/sdk';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { embedMany, generateText, streamText } from 'ai';
import OpenAI, { toFile } from 'openai';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer, type ScriptedModelServer } from '../support/demo-model-server.ts';
import { soundFile } from '../support/sound-file.ts';

let demo: ScriptedModelServer;
let berth: BerthSystem;
let folder: string;

beforeAll(async () => {
  demo = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: demo.url });
  folder = await mkdtemp(path.join(tmpdir(), 'berth-clients-'));
});
afterAll(async () => {
  await berth.stop();
  await demo.close();
  await rm(folder, { recursive: true, force: true });
});

const run = promisify(execFile);
const MODEL = 'demo-chat-small';
const MESSAGES = [{ role: 'user' as const, content: 'Tell me of the harbour.' }];

/** What a client makes of the model server itself and of Berth; the second must equal the first. */
async function both<Result>(ask: (url: string) => Promise<Result>): Promise<[Result, Result]> {
  const direct = await ask(demo.url);
  const before = demo.record.length;
  const through = await ask(berth.url);
  const asked = demo.record.slice(before).filter(({ method }) => method === 'POST');
  expect(asked).not.toEqual([]);
  // Each of them came as a job of the queue.
  for (const { headers } of asked) expect(headers['x-berth-job-id']).toBeDefined();
  return [direct, through];
}

async function equal<Result>(ask: (url: string) => Promise<Result>): Promise<Result> {
  const [direct, through] = await both(ask);
  expect(through).toEqual(direct);
  return through;
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe("OpenAI's client", () => {
  const client = (url: string): OpenAI =>
    new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-anything', maxRetries: 0 });
  const chat = { model: MODEL, messages: MESSAGES, max_tokens: 6 };

  test('chat', async () => {
    const answer = await equal(async (url) => client(url).chat.completions.create(chat));
    expect(answer.choices[0]?.message.content).toMatch(/\w/);
  });

  test('streamed chat', async () => {
    const chunks = await equal(async (url) =>
      all(await client(url).chat.completions.create({ ...chat, stream: true })),
    );
    expect(chunks.length).toBeGreaterThan(4);
  });

  test('completions, whole and streamed', async () => {
    const order = { model: MODEL, prompt: 'Once', max_tokens: 6 };
    const whole = await equal(async (url) => client(url).completions.create(order));
    expect(whole.choices[0]?.text).toMatch(/\w/);
    await equal(async (url) =>
      all(await client(url).completions.create({ ...order, stream: true })),
    );
  });

  test('responses, whole and streamed, with a limit and without', async () => {
    for (const [last, limit] of [
      ['response.incomplete', { max_output_tokens: 6 }],
      ['response.completed', {}],
    ] as const) {
      const order = { model: MODEL, input: 'Once', ...limit };
      const whole = await equal(async (url) => client(url).responses.create(order));
      expect(whole.output_text).toMatch(/\w/);
      const events = await equal(async (url) =>
        all(await client(url).responses.create({ ...order, stream: true })),
      );
      expect(events.at(-1)?.type).toBe(last);
    }
  });

  test('embeddings', async () => {
    const order = { model: 'demo-embed', input: ['one', 'two'] };
    const answer = await equal(async (url) => client(url).embeddings.create(order));
    expect(answer.data).toHaveLength(2);
  });

  test('an image', async () => {
    const order = { model: 'demo-image', prompt: 'a pier', size: '256x256' as const };
    const answer = await equal(async (url) => client(url).images.generate(order));
    expect(answer.data).toHaveLength(1);
  });

  test('the transcription of an audio file', async () => {
    const answer = await equal(async (url) =>
      client(url).audio.transcriptions.create({
        model: 'demo-audio',
        file: await toFile(soundFile(1), 'tone.wav', { type: 'audio/wav' }),
      }),
    );
    expect(answer.text).toMatch(/\w/);
  });

  test('speech, and the text heard in it', async () => {
    const order = { model: 'demo-audio', voice: 'alloy', input: 'Ahoy' } as const;
    const spoken = await equal(async (url) =>
      Buffer.from(await (await client(url).audio.speech.create(order)).arrayBuffer()),
    );
    expect(spoken.toString('latin1', 0, 4)).toBe('RIFF');
    const heard = await equal(async (url) =>
      client(url).audio.transcriptions.create({
        model: 'demo-audio',
        file: await toFile(spoken, 'ahoy.wav', { type: 'audio/wav' }),
      }),
    );
    expect(heard.text).toMatch(/\w/);
  });

  test('the list of models', async () => {
    const ids = async (url: string): Promise<string[]> =>
      (await all(await client(url).models.list())).map(({ id }) => id);
    expect(await ids(berth.url)).toEqual(await ids(demo.url));
  });
});

describe("Anthropic's client", () => {
  const client = (url: string): Anthropic =>
    new Anthropic({ baseURL: url, apiKey: 'sk-anything', maxRetries: 0 });
  const order = { model: MODEL, messages: MESSAGES, max_tokens: 6 };

  test('a message, and its tokens counted', async () => {
    const answer = await equal(async (url) => client(url).messages.create(order));
    expect(answer.content[0]).toMatchObject({ type: 'text' });
    await equal(async (url) =>
      client(url).messages.countTokens({ model: MODEL, messages: MESSAGES }),
    );
  });

  test('a streamed message', async () => {
    const events = await equal(async (url) =>
      all(await client(url).messages.create({ ...order, stream: true })),
    );
    expect(events.at(-1)?.type).toBe('message_stop');
    await equal(async (url) => client(url).messages.stream(order).finalMessage());
  });
});

describe("Vercel's AI SDK", () => {
  const provider = (url: string) =>
    createOpenAICompatible({ name: 'berth', baseURL: `${url}/v1`, apiKey: 'sk-anything' });
  const order = { prompt: 'Tell me of the harbour.', maxOutputTokens: 6, maxRetries: 0 };

  test('text, whole and streamed', async () => {
    const whole = await equal(async (url) => {
      const { text, finishReason, usage } = await generateText({
        model: provider(url)(MODEL),
        ...order,
      });
      return { text, finishReason, usage };
    });
    expect(whole.text).toMatch(/\w/);
    const pieces = await equal(async (url) =>
      all(streamText({ model: provider(url)(MODEL), ...order }).textStream),
    );
    expect(pieces.length).toBeGreaterThan(1);
  });

  test('embeddings', async () => {
    const vectors = await equal(async (url) => {
      const model = provider(url).textEmbeddingModel('demo-embed');
      return (await embedMany({ model, values: ['one', 'two'], maxRetries: 0 })).embeddings;
    });
    expect(vectors).toHaveLength(2);
  });
});

describe('clients without a library', () => {
  const body = JSON.stringify({ model: MODEL, messages: MESSAGES, max_tokens: 6, stream: true });

  test('fetch, reading lines of a stream as chat front ends do', async () => {
    const lines = await equal(async (url) => {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      const decoder = new TextDecoder();
      let text = '';
      for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>)
        text += decoder.decode(piece, { stream: true });
      return text.split('\n');
    });
    expect(lines).toContain('data: [DONE]');
  });

  test('curl: a stream, a form, a body of its own Expect', async () => {
    const file = path.join(folder, 'tone.wav');
    await writeFile(file, soundFile(30));
    const curl = async (args: readonly string[]): Promise<string> =>
      (await run('curl', ['-sS', '--fail-with-body', ...args], { maxBuffer: 2 ** 26 })).stdout;
    await equal(async (url) =>
      curl([
        '-N',
        '-H',
        'Content-Type: application/json',
        '-d',
        body,
        `${url}/v1/chat/completions`,
      ]),
    );
    const heard = await equal(async (url) =>
      curl([
        ...['-H', 'Expect: 100-continue', '-F', `file=@${file};type=audio/wav`],
        ...['-F', 'model=demo-audio', `${url}/v1/audio/transcriptions`],
      ]),
    );
    expect(heard).toContain('"text"');
    await equal(async (url) =>
      curl([
        '--http1.0',
        '-H',
        'Content-Type: application/json',
        '-d',
        body,
        `${url}/v1/chat/completions`,
      ]),
    );
  });

  test("Python's standard library", async () => {
    if (spawnSync('python3', ['--version']).status !== 0) {
      process.stderr.write(
        'python3 is missing (Berth does not need it): its client went untested\n',
      );
      return;
    }
    const script = path.join(folder, 'ask.py');
    await writeFile(
      script,
      [
        'import http.client, json, sys, urllib.request',
        'url, body = sys.argv[1], sys.argv[2].encode()',
        'headers = {"Content-Type": "application/json"}',
        'request = urllib.request.Request(url + "/v1/chat/completions", body, headers)',
        'with urllib.request.urlopen(request, timeout=20) as answer:',
        '    for line in answer:',
        '        print(line.decode().rstrip())',
        'link = http.client.HTTPConnection(url.split("//")[1], timeout=20)',
        'for turn in range(2):',
        '    link.request("POST", "/v1/embeddings", json.dumps({"model": "demo-embed", "input": str(turn)}), headers)',
        '    answer = link.getresponse()',
        '    print(answer.status, answer.read().decode())',
      ].join('\n'),
    );
    const out = await equal(async (url) => (await run('python3', [script, url, body])).stdout);
    expect(out).toContain('data: [DONE]');
    expect(out.match(/^200 /gm)).toHaveLength(2);
  });
});
