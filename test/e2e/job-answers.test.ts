import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { RawClient } from '../support/raw-client.ts';
import { RawUpstream } from '../support/raw-upstream.ts';
import {
  chunkedHead,
  chunkOf,
  LAST_CHUNK,
  NAME_HEADER,
  ScriptedStreams,
} from '../support/scripted-streams.ts';

let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({
    modelServerUrl: upstream.url,
    env: {
      BERTH_CONFIG: new URL('../support/quick-retries.config.json', import.meta.url).pathname,
    },
  });
});
afterAll(async () => {
  await berth.stop();
  await upstream.close();
});

async function later(name: string, path: string, rest: object = {}): Promise<JobObject> {
  const response = await fetch(`${berth.url}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      prefer: 'respond-async',
      [NAME_HEADER]: name,
    },
    body: JSON.stringify({ model: 'm', ...rest }),
  });
  expect(response.status).toBe(202);
  return (await response.json()) as JobObject;
}

const get = async (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${berth.url}${path}`, { headers });
const ended = async (id: string): Promise<JobObject> =>
  (await (await get(`/berth/jobs/${id}?wait=20`)).json()) as JobObject;
const over = async (id: string): Promise<JobObject> => {
  for (;;) {
    const job = await ended(id);
    if (job.state !== 'waiting' && job.state !== 'running') return job;
  }
};
const delta = (text: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ delta: { content: text }, finish_reason: finish }] })}\n\n`;

/** A stream whose pieces are sent when the test says so. */
function stepwise(name: string): { send: (text: string) => void; end: () => void } {
  let socket: { write: (text: string) => unknown } | undefined;
  streams.set(name, (each) => {
    socket = each;
    each.write(chunkedHead());
  });
  return {
    send: (text) => socket?.write(chunkOf(text)),
    end: () => socket?.write(LAST_CHUNK),
  };
}
const reached = async (name: string): Promise<void> => {
  await eventually(() => streams.socketOf(name) !== undefined, { what: `${name} to run` });
};

describe('/result', () => {
  const large = randomBytes(1_000_000);
  const head = `HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nX-Model: a\r\nX-Model: b\r\nContent-Length: ${large.length}\r\n\r\n`;

  test('is the model server’s status, headers and bytes', async () => {
    streams.set('odd', (socket) => {
      socket.write(
        'HTTP/1.1 418 Any\r\nContent-Type: text/x-odd\r\nX-Model: a\r\nx-model: b\r\nContent-Length: 5\r\n\r\n\u0001odd\n',
      );
    });
    const job = await later('odd', '/v1/chat/completions');
    expect(await over(job.id)).toMatchObject({ state: 'completed' });
    const client = await RawClient.to(berth.url);
    await client.send(`GET /berth/jobs/${job.id}/result HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
    const answer = await client.answer();
    client.leave();
    expect(answer.status).toBe(418);
    expect(answer.lines).toEqual(
      expect.arrayContaining(['Content-Type: text/x-odd', 'X-Model: a', 'x-model: b']),
    );
    expect(answer.body).toBe('\u0001odd\n');
  });

  test('of a large body can be read in parts', async () => {
    streams.set('large', (socket) => {
      socket.write(head);
      socket.write(large);
    });
    const job = await later('large', '/v1/audio/speech', { input: 'x' });
    expect(await over(job.id)).toMatchObject({ state: 'completed' });
    const result = `/berth/jobs/${job.id}/result`;
    const whole = await get(result);
    expect(whole.status).toBe(200);
    expect(whole.headers.get('accept-ranges')).toBe('bytes');
    expect(large.equals(Buffer.from(await whole.arrayBuffer()))).toBe(true);
    for (const [range, from, to] of [
      ['bytes=0-99', 0, 100],
      ['bytes=262100-262200', 262_100, 262_201],
      ['bytes=999000-', 999_000, 1_000_000],
      ['bytes=-10', 999_990, 1_000_000],
      ['bytes=5-2000000', 5, 1_000_000],
    ] as const) {
      const part = await get(result, { range });
      expect(part.status).toBe(206);
      expect(part.headers.get('content-range')).toBe(`bytes ${from}-${to - 1}/1000000`);
      expect(part.headers.get('content-length')).toBe(String(to - from));
      expect(large.subarray(from, to).equals(Buffer.from(await part.arrayBuffer()))).toBe(true);
    }
    const beyond = await get(result, { range: 'bytes=1000000-' });
    expect(beyond.status).toBe(416);
    expect(beyond.headers.get('content-range')).toBe('bytes */1000000');
    expect((await get(result, { range: 'bytes=0-1,4-5' })).status).toBe(200);
    expect((await get(result, { range: 'bytes=0-1', 'if-range': '"x"' })).status).toBe(200);
    const rest = await get(`/berth/jobs/${job.id}/stream?offset=300000`);
    expect(rest.headers.get('content-length')).toBe('700000');
    expect(large.subarray(300_000).equals(Buffer.from(await rest.arrayBuffer()))).toBe(true);
    expect((await get(`/berth/jobs/${job.id}/stream?offset=1000001`)).status).toBe(400);
  });

  test('is not there before the end', async () => {
    const held = stepwise('unfinished');
    const job = await later('unfinished', '/v1/chat/completions', { stream: true });
    await reached('unfinished');
    const response = await get(`/berth/jobs/${job.id}/result`);
    expect(response.status).toBe(404);
    expect(response.headers.get('retry-after')).toBe('2');
    expect(await response.json()).toMatchObject({ error: { code: 'job_not_found' } });
    held.send(delta('x', 'stop') + 'data: [DONE]\n\n');
    held.end();
    await over(job.id);
    expect((await get(`/berth/jobs/${job.id}/result`)).status).toBe(200);
  });

  test('that is not kept any more is a 410, as long as the job is', async () => {
    streams.set('forgotten', (socket) => {
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
    const job = await later('forgotten', '/v1/chat/completions');
    expect(await over(job.id)).toMatchObject({ state: 'completed' });
    const redis = new Redis(berth.redis.socket);
    await redis.del(`{berth}:gpu:log:${job.id}`);
    redis.disconnect();
    for (const part of ['result', 'stream']) {
      const response = await get(`/berth/jobs/${job.id}/${part}`);
      expect(response.status).toBe(410);
      expect(await response.json()).toMatchObject({ error: { code: 'result_gone' } });
    }
  });

  test('of a failed job is its error', async () => {
    streams.set('broken', (socket) => {
      socket.end('nonsense\r\n\r\n');
    });
    const job = await later('broken', '/v1/chat/completions');
    const failed = await over(job.id);
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'model_server_invalid' } });
    expect(failed.error?.message).not.toBe('');
    const response = await get(`/berth/jobs/${job.id}/result`);
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: { code: 'model_server_invalid' } });
  }, 60_000);
});

describe('/stream', () => {
  test('gives the answer so far, then live, to every reader from where it asks', async () => {
    const held = stepwise('streamed');
    const job = await later('streamed', '/v1/chat/completions', { stream: true });
    await reached('streamed');
    const early = await RawClient.to(berth.url);
    const path = `/berth/jobs/${job.id}/stream`;
    await early.send(`GET ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);
    held.send(delta('one'));
    await early.until((text) => text.includes('one'));
    const resumed = await RawClient.to(berth.url);
    const offset = Buffer.byteLength(delta('one'));
    await resumed.send(
      `GET ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\nLast-Event-ID: 1-${offset}\r\n\r\n`,
    );
    const other = await RawClient.to(berth.url);
    await other.send(`GET ${path}?offset=3 HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);
    await other.until((text) => text.includes('one'));
    held.send(delta('two', 'stop'));
    held.send('data: [DONE]\n\n');
    held.end();
    const whole = `${delta('one')}${delta('two', 'stop')}data: [DONE]\n\n`;
    const bodies = await Promise.all(
      [early, resumed, other].map(async (client) => {
        const text = await client.closed();
        expect(text).toMatch(/^HTTP\/1\.1 200 /);
        return text.slice(text.indexOf('\r\n\r\n') + 4);
      }),
    );
    expect(bodies).toEqual([whole, whole.slice(offset), whole.slice(3)]);
    expect(await over(job.id)).toMatchObject({ state: 'completed' });
    const late = await get(path);
    expect(await late.text()).toBe(whole);
    expect((await get(path, { 'last-event-id': '7-3' })).status).toBe(400);
    expect((await get(path, { 'last-event-id': 'x' })).status).toBe(400);
  });

  test('survives the end of the ingress: it goes on at another from the byte where it broke off', async () => {
    const held = stepwise('outlives');
    const job = await later('outlives', '/v1/chat/completions', { stream: true });
    await reached('outlives');
    held.send(delta('before'));
    const path = `/berth/jobs/${job.id}/stream`;
    const client = await RawClient.to(berth.url);
    await client.send(`GET ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);
    await client.until((text) => text.includes('before'));
    await berth.processes.ingress?.kill('SIGKILL');
    await berth.startProcess('ingress');
    await berth.ready();
    const rest = get(`${path}?offset=${Buffer.byteLength(delta('before'))}`);
    held.send(delta('after', 'stop') + 'data: [DONE]\n\n');
    held.end();
    expect(await (await rest).text()).toBe(`${delta('after', 'stop')}data: [DONE]\n\n`);
  });
});

describe('/events', () => {
  interface Told {
    id: string;
    event: string;
    data: { state?: string; job?: JobObject; position?: number; bytes?: number };
  }
  const parse = (text: string): Told[] =>
    text
      .replace(/^HTTP.*?\r\n\r\n/s, '')
      .split('\n\n')
      .filter((block) => block.startsWith('id:'))
      .map((block) => {
        const fields = Object.fromEntries(
          block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)),
        ) as Record<string, string>;
        return {
          id: String(fields.id),
          event: String(fields.event),
          data: JSON.parse(String(fields.data)) as Told['data'],
        };
      });
  const numberOf = (id: string): number => {
    const [step, count] = id.split('-').map(Number);
    return Number(step) * 1e9 + Number(count);
  };

  test('tells states, positions and progress with growing ids, the end last', async () => {
    const before = stepwise('runs before');
    await later('runs before', '/v1/chat/completions', { stream: true });
    await reached('runs before');
    const held = stepwise('told');
    const job = await later('told', '/v1/chat/completions', { stream: true });
    const path = `/berth/jobs/${job.id}/events`;
    const client = await RawClient.to(berth.url);
    await client.send(`GET ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);
    await client.until((text) => text.includes('event: position'));
    before.send(delta('x', 'stop') + 'data: [DONE]\n\n');
    before.end();
    await reached('told');
    held.send(delta('abc'));
    await client.until((text) => text.includes('event: progress'));
    held.send(delta('d', 'stop') + 'data: [DONE]\n\n');
    held.end();
    const events = parse(await client.closed());
    const states = events.filter(({ event }) => event === 'state').map(({ data }) => data.state);
    expect(states).toEqual(['waiting', 'running', 'completed']);
    expect(events.find(({ event }) => event === 'position')?.data.position).toBe(1);
    expect(events.find(({ event }) => event === 'progress')?.data.bytes).toBe(
      Buffer.byteLength(delta('abc')),
    );
    expect(events.at(-1)?.data.job).toMatchObject({ id: job.id, state: 'completed' });
    const ids = events.map(({ id }) => numberOf(id));
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(ids.length);

    const running = events.find(({ data }) => data.state === 'running')?.id ?? '';
    const resumed = parse(await (await get(path, { 'last-event-id': running })).text());
    expect(resumed.map(({ data }) => data.state)).toEqual(['completed']);
    const again = await get(path, { 'last-event-id': events.at(-1)?.id ?? '' });
    expect(again.status).toBe(204);
    const all = parse(await (await get(path)).text());
    expect(all.map(({ data }) => data.state)).toEqual(['waiting', 'running', 'completed']);
    expect((await get(path, { 'last-event-id': 'x' })).status).toBe(400);
  });
});
