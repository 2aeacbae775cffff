import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { answerOf, RawUpstream } from '../support/raw-upstream.ts';
import { eventually } from '../support/eventually.ts';
import {
  chunkedHead,
  chunkOf,
  LAST_CHUNK,
  NAME_HEADER,
  ScriptedStreams,
  STREAMS,
  streamOf,
} from '../support/scripted-streams.ts';

/** Beyond the 300 s after which undici, Node's server and Node's fetch give up unless they are told not to. */
const SILENCE_MS = 310_000;

let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({ modelServerUrl: upstream.url });
});
afterAll(async () => {
  await berth.stop();
  await upstream.close();
});

interface Answer {
  status: number;
  text: string;
  /** Longest time without a byte, from the request on, in ms. */
  silentMs: number;
}

async function ask(name: string, path: string, body: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let heardAt = performance.now();
    let silentMs = 0;
    let text = '';
    const hear = (): void => {
      silentMs = Math.max(silentMs, performance.now() - heardAt);
      heardAt = performance.now();
    };
    const outgoing = request(berth.url + path, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', [NAME_HEADER]: name },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      hear();
      incoming.setEncoding('utf8').on('data', (piece: string) => {
        hear();
        text += piece;
      });
      incoming.on('error', reject);
      incoming.on('end', () => resolve({ status: incoming.statusCode ?? 0, text, silentMs }));
    });
    outgoing.end(JSON.stringify({ model: 'm', ...body }));
  });
}

const silence = async (): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, SILENCE_MS));

test(
  'a real silence of more than 300 s loses no answer, and a waiting stream is never silent for long',
  async () => {
    streams.set('image', async (socket) => {
      await silence();
      socket.write(answerOf(200, 'application/json', '{"image":true}'));
    });
    streams.set('stream', streamOf(STREAMS.chat));
    const image = ask('image', '/v1/images/generations', {});
    await eventually(() => streams.socketOf('image') !== undefined, { what: 'the image to run' });
    const stream = ask('stream', '/v1/chat/completions', { stream: true });
    const plain = ask('plain', '/v1/chat/completions', {});
    expect(await image).toMatchObject({ status: 200, text: '{"image":true}' });
    const { status, text, silentMs } = await stream;
    expect([status, withoutSigns(text)]).toEqual([200, STREAMS.chat.join('')]);
    expect(silentMs).toBeLessThan(25_000);
    const late = await plain;
    expect(late).toMatchObject({ status: 200, text: '{"ok":true}' });
    expect(late.silentMs).toBeGreaterThan(SILENCE_MS - 20_000);
  },
  SILENCE_MS + 60_000,
);

test(
  'so does one in the middle of a stream',
  async () => {
    const [first, ...others] = STREAMS.chat;
    streams.set('gap', async (socket) => {
      socket.write(chunkedHead() + chunkOf(first));
      await silence();
      socket.write(others.map(chunkOf).join('') + LAST_CHUNK);
    });
    const { status, text, silentMs } = await ask('gap', '/v1/chat/completions', { stream: true });
    expect([status, withoutSigns(text)]).toEqual([200, STREAMS.chat.join('')]);
    expect(silentMs).toBeLessThan(25_000);
  },
  SILENCE_MS + 60_000,
);

const withoutSigns = (text: string): string => text.replaceAll(/: berth[^\n]*\n/g, '');
