import Anthropic from '@anthropic-ai/sdk';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import OpenAI from 'openai';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { keyedConfig } from '../support/keyed-config.ts';
import { answerOf, RawUpstream } from '../support/raw-upstream.ts';
import {
  chunkedHead,
  chunkOf,
  LAST_CHUNK,
  NAME_HEADER,
  ScriptedStreams,
  STREAMS,
  streamOf,
} from '../support/scripted-streams.ts';
import type { Play } from '../support/scripted-streams.ts';

/** Silence before the first sign of life and between the ones after it, in seconds. */
const AFTER = 0.2;
const EVERY = 0.1;

const config = keyedConfig([], { keepAlive: { afterSeconds: AFTER, everySeconds: EVERY } });
let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;
let openai: OpenAI;
let anthropic: Anthropic;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({
    modelServerUrl: upstream.url,
    env: { BERTH_CONFIG: config.file },
  });
  openai = new OpenAI({ baseURL: `${berth.url}/v1`, apiKey: 'sk-x', maxRetries: 0 });
  anthropic = new Anthropic({ baseURL: berth.url, apiKey: 'sk-x', maxRetries: 0 });
});
afterAll(async () => {
  await berth.stop();
  await upstream.close();
  config.remove();
});

const named = (name: string) => ({ headers: { [NAME_HEADER]: name } });
const messages = [{ role: 'user' as const, content: 'x' }];

/** What each protocol's official client makes of a stream: its text. */
const TEXT_BY: Record<keyof typeof STREAMS, (name: string) => Promise<string>> = {
  chat: async (name) => {
    let text = '';
    const asked = { model: 'm', messages, stream: true } as const;
    for await (const chunk of await openai.chat.completions.create(asked, named(name)))
      text += chunk.choices[0]?.delta.content ?? '';
    return text;
  },
  completions: async (name) => {
    let text = '';
    const asked = { model: 'm', prompt: 'x', stream: true } as const;
    for await (const chunk of await openai.completions.create(asked, named(name)))
      text += chunk.choices[0]?.text ?? '';
    return text;
  },
  responses: async (name) => {
    let text = '';
    const asked = { model: 'm', input: 'x', stream: true } as const;
    for await (const event of await openai.responses.create(asked, named(name)))
      if (event.type === 'response.output_text.delta') text += event.delta;
    return text;
  },
  messages: async (name) => {
    const asked = { model: 'm', max_tokens: 9, messages };
    const stream = anthropic.messages.stream(asked, named(name));
    return stream.finalText();
  },
};
const PROTOCOLS = Object.keys(STREAMS) as (keyof typeof STREAMS)[];
const PATHS = {
  chat: '/v1/chat/completions',
  completions: '/v1/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
} as const;

const post = async (path: string, name: string, body: object = {}): Promise<Response> =>
  fetch(berth.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [NAME_HEADER]: name },
    body: JSON.stringify({ model: 'm', stream: true, ...body }),
  });

/** Something to wait for until the test lets it happen. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}

/** A job that has the GPU until it is released. */
async function busyGpu(): Promise<{ release: () => Promise<void> }> {
  const name = `busy-${Math.random()}`;
  const { release } = streams.hold(name);
  const running = post(PATHS.chat, name, { stream: false });
  await eventually(() => Promise.resolve(streams.socketOf(name) !== undefined), {
    what: 'the GPU to be taken',
  });
  return {
    release: async () => {
      release();
      await running;
    },
  };
}

/** Reads until what came fulfils it. */
function readerOf(response: Response) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    until: async (what: RegExp): Promise<string> => {
      while (!what.test(text)) {
        const next = await reader?.read();
        if (next?.done !== false) throw new Error(`ended after ${JSON.stringify(text)}`);
        text += next.value;
      }
      return text;
    },
    rest: async (): Promise<string> => {
      for (let next = await reader?.read(); next?.done === false; next = await reader?.read())
        text += next.value;
      return text;
    },
  };
}

describe.each(PROTOCOLS)('a streaming client of %s', (protocol) => {
  const path = PATHS[protocol];
  const bytes = STREAMS[protocol].join('');

  test('is told its position and ETA while it waits, then gets the bytes of the model server', async () => {
    const name = `waits-${protocol}`;
    const gpu = await busyGpu();
    streams.set(name, streamOf(STREAMS[protocol]));
    const response = await post(path, name);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(response.headers.get('cache-control')).toBe('no-cache');
    expect(response.headers.get('x-berth-job-id')).toMatch(/^[0-9a-f-]{36}$/);
    const reader = readerOf(response);
    await reader.until(/: berth position 1 eta \d+-\d+\n/);
    expect(streams.socketOf(name)).toBeUndefined();
    await gpu.release();
    const text = await reader.rest();
    expect(text.endsWith(bytes)).toBe(true);
    const signs = text.slice(0, -bytes.length);
    expect(signs).toMatch(
      protocol === 'messages'
        ? /^(: berth [^\n]+\nevent: ping\ndata: \{"type":"ping"\}\n\n)+$/
        : /^(: berth [^\n]+\n)+$/,
    );
  });

  test('reads the same answer with the official client after a wait as without one', async () => {
    const name = `client-${protocol}`;
    streams.set(name, streamOf(STREAMS[protocol]));
    expect(await TEXT_BY[protocol](name)).toBe('harbour');
    const gpu = await busyGpu();
    const asked = performance.now();
    const text = TEXT_BY[protocol](name);
    await eventually(
      () => Promise.resolve(performance.now() - asked > (AFTER + EVERY * 3) * 1000),
      {
        what: 'signs of life to be due',
      },
    );
    await gpu.release();
    expect(await text).toBe('harbour');
  });

  test('gets signs of life while the model server is silent after its head, also between events', async () => {
    const name = `silent-${protocol}`;
    const [first = '', ...others] = STREAMS[protocol];
    const gates = [gate(), gate()] as const;
    streams.set(name, async (socket) => {
      socket.write(chunkedHead());
      await gates[0].opened;
      socket.write(chunkOf(first));
      await gates[1].opened;
      socket.write(others.map(chunkOf).join('') + LAST_CHUNK);
    });
    const reader = readerOf(await post(path, name));
    await reader.until(/: berth running[^\n]*\n/);
    gates[0].open();
    await reader.until(/data: \{"[^p][^\n]*\n\n(: berth running[^\n]*\n.*)+$/s);
    gates[1].open();
    const text = await reader.rest();
    expect(text.replaceAll(/: berth[^\n]*\n(event: ping\n[^\n]*\n\n)?/g, '')).toBe(bytes);
  });

  test('reads with the official client what a model server says that is silent in between', async () => {
    const name = `slow-${protocol}`;
    streams.set(name, async (socket) => {
      socket.write(chunkedHead());
      for (const event of STREAMS[protocol]) {
        if (event === STREAMS[protocol][0] || event === STREAMS[protocol][1])
          await new Promise((resolve) => setTimeout(resolve, (AFTER + 2 * EVERY) * 1000));
        socket.write(chunkOf(event));
      }
      socket.write(LAST_CHUNK);
    });
    expect(await TEXT_BY[protocol](name)).toBe('harbour');
  });

  test('throws with the official client when the model server refuses after signs of life', async () => {
    const name = `refused-${protocol}`;
    const { release } = streams.hold(name, (socket) => {
      const error = { error: { message: 'the context is too long', type: 'x', code: 400 } };
      socket.write(answerOf(400, 'application/json', JSON.stringify(error)));
    });
    const text = TEXT_BY[protocol](name);
    const caught = text.catch((error: unknown) => error);
    const reader = readerOf(await post(path, name));
    await reader.until(/: berth/);
    release();
    const error = await caught;
    expect(error).toBeInstanceOf(protocol === 'messages' ? Anthropic.APIError : OpenAI.APIError);
    expect(String(error)).toContain('the context is too long');
    const said = await reader.rest();
    expect(said).toContain('the context is too long');
    expect(said).not.toContain('[DONE]');
  });

  test('throws with the official client when the stream breaks off, also in the middle of an event', async () => {
    const name = `breaks-${protocol}`;
    const [first = '', second = ''] = STREAMS[protocol];
    streams.set(name, (socket) => {
      socket.write(chunkedHead() + chunkOf(first) + chunkOf(second.slice(0, 20)));
      setImmediate(() => socket.destroy());
    });
    const error = await TEXT_BY[protocol](name).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(protocol === 'messages' ? Anthropic.APIError : OpenAI.APIError);
    expect(String(error)).toContain('broke off');
  });

  test('gets an early error with its own status', async () => {
    const name = `early-${protocol}`;
    streams.set(name, (socket) => {
      socket.write(answerOf(422, 'application/json', '{"error":{"message":"no"}}'));
    });
    const response = await post(path, name);
    expect([response.status, await response.text()]).toEqual([422, '{"error":{"message":"no"}}']);
  });
});

test("llama-swap's reasoning frames, when configured, are chunks the official client reads", async () => {
  const other = keyedConfig([], {
    keepAlive: { afterSeconds: AFTER, everySeconds: EVERY, style: 'reasoning' },
  });
  const system = await BerthSystem.start({
    modelServerUrl: upstream.url,
    env: { BERTH_CONFIG: other.file, POOL: 'reasoning' },
  });
  try {
    const client = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'sk-x', maxRetries: 0 });
    const busyGate = streams.hold('reasoning-busy');
    const asked = { model: 'm', messages } as const;
    const busy = client.chat.completions.create(asked, named('reasoning-busy'));
    await eventually(() => Promise.resolve(streams.socketOf('reasoning-busy') !== undefined), {
      what: 'a run',
    });
    streams.set('reasoning', streamOf(STREAMS.chat));
    let content = '';
    let reasoning = '';
    const stream = await client.chat.completions.create(
      { ...asked, stream: true },
      named('reasoning'),
    );
    for await (const chunk of stream) {
      const delta = chunk.choices[0]?.delta as { content?: string; reasoning_content?: string };
      if (reasoning === '') busyGate.release();
      reasoning += delta.reasoning_content ?? '';
      content += delta.content ?? '';
    }
    expect(reasoning).toMatch(/^Queue position: #1/);
    expect(content).toBe('harbour');
    await busy;
  } finally {
    await system.stop();
    other.remove();
  }
}, 60_000);

test('answers in one piece, and streams of other things than text, get no signs of life', async () => {
  const held: Play = (socket) => {
    socket.write(answerOf(200, 'application/json', '{"whole":true}'));
  };
  const gpu = await busyGpu();
  streams.set('whole', held);
  const whole = post(PATHS.chat, 'whole', { stream: false });
  const count = post('/v1/messages/count_tokens', 'whole');
  const waiting = readerOf(await post(PATHS.chat, 'other'));
  await waiting.until(/(: berth[^\n]*\n){3}/);
  await gpu.release();
  for (const response of [await whole, await count])
    expect([response.headers.get('content-type'), await response.text()]).toEqual([
      'application/json',
      '{"whole":true}',
    ]);
  expect(await waiting.rest()).toMatch(/data: \{"src":"berth","error":.*model_server_invalid/);
});
