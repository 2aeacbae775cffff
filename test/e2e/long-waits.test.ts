import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { keyedConfig } from '../support/keyed-config.ts';
import { answerOf, RawUpstream } from '../support/raw-upstream.ts';
import { NAME_HEADER, ScriptedStreams, STREAMS, streamOf } from '../support/scripted-streams.ts';

/** A minute of the shortened clocks, in ms: signs of life come after 20 s and every 15 s of them. */
const MINUTE = 200;

const config = keyedConfig([], {
  keepAlive: { afterSeconds: (20 * MINUTE) / 60_000, everySeconds: (15 * MINUTE) / 60_000 },
});
let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({
    modelServerUrl: upstream.url,
    env: { BERTH_CONFIG: config.file },
  });
});
afterAll(async () => {
  await berth.stop();
  await upstream.close();
  config.remove();
});

/** An answer, read by a client that never gives up. */
async function ask(path: string, name: string, body: object): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const outgoing = request(berth.url + path, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', [NAME_HEADER]: name },
    });
    outgoing.on('error', reject);
    outgoing.on('response', (incoming) => {
      let text = '';
      incoming.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      incoming.on('error', reject);
      incoming.on('end', () => resolve([incoming.statusCode ?? 0, text]));
    });
    outgoing.end(JSON.stringify({ model: 'm', ...body }));
  });
}

async function view(): Promise<QueueView> {
  return (await (await fetch(`${berth.url}/berth/queue`)).json()) as QueueView;
}

test('a silent image of 25 minutes and those who wait 30 minutes behind such all get their answers', async () => {
  /** Until Berth itself says so. */
  const said = async (what: string, is: (now: QueueView) => boolean): Promise<unknown> =>
    eventually(async () => is(await view()), { timeoutMs: 30_000, everyMs: 50, what });
  streams.set('image', async (socket) => {
    await said(
      '25 minutes of silence',
      ({ running }) => Number(running?.running_seconds) * 1000 >= 25 * MINUTE,
    );
    socket.write(answerOf(200, 'application/json', '{"of":"image"}'));
  });
  streams.set('second image', async (socket) => {
    await said(
      'two that waited for 30 minutes',
      ({ waiting }) =>
        waiting.length === 2 &&
        waiting.every(({ waited_seconds }) => waited_seconds * 1000 >= 30 * MINUTE),
    );
    socket.write(answerOf(200, 'application/json', '{"of":"second image"}'));
  });
  streams.set('stream', streamOf(STREAMS.chat));
  const image = ask('/v1/images/generations', 'image', { prompt: 'x' });
  await eventually(() => streams.socketOf('image') !== undefined, { what: 'the image to run' });
  const second = ask('/v1/images/generations', 'second image', { prompt: 'x' });
  await eventually(
    async () => {
      return (await view()).waiting.length === 1;
    },
    { what: 'the second image to wait' },
  );
  const waited = performance.now();
  const plain = ask('/v1/chat/completions', 'plain', {});
  const stream = ask('/v1/chat/completions', 'stream', { stream: true });
  expect(await image).toEqual([200, '{"of":"image"}']);
  expect(await second).toEqual([200, '{"of":"second image"}']);
  expect(await plain).toEqual([200, '{"ok":true}']);
  const [status, text] = await stream;
  expect(performance.now() - waited).toBeGreaterThan(30 * MINUTE);
  expect(status).toBe(200);
  expect(text.endsWith(STREAMS.chat.join(''))).toBe(true);
  // 30 minutes of silence hold some 120 signs; a busy machine misses some.
  expect(text.match(/: berth [^\n]+\n/g)?.length).toBeGreaterThan(40);
}, 60_000);
