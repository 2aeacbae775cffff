import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BullJobQueue } from '../../src/adapters/redis/bull-job-queue.ts';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { poolKeys } from '../../src/adapters/redis/keys.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { RawClient } from '../support/raw-client.ts';
import { answerOf, RawUpstream } from '../support/raw-upstream.ts';
import { chunkedHead, chunkOf, NAME_HEADER, ScriptedStreams } from '../support/scripted-streams.ts';
import { KEEP_TIMES } from '../support/queue-fixture.ts';

let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;
let redis: ReturnType<typeof connectRedis>;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({
    modelServerUrl: upstream.url,
    env: {
      BERTH_CONFIG: new URL('../support/quick-retries.config.json', import.meta.url).pathname,
    },
  });
  redis = connectRedis(berth.redis.url, 'patient', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await berth.stop();
  await upstream.close();
});

const body = (rest: object = {}): string => JSON.stringify({ model: 'm', ...rest });
const post = async (name: string, signal: AbortSignal | null = null, rest: object = {}) =>
  fetch(`${berth.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [NAME_HEADER]: name },
    body: body(rest),
    signal,
  });
const raw = (name: string, version = '1.1'): string =>
  `POST /v1/chat/completions HTTP/${version}\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${NAME_HEADER}: ${name}\r\nContent-Length: ${body().length}\r\n\r\n${body()}`;
const reached = async (name: string): Promise<void> =>
  eventually(() => streams.socketOf(name) !== undefined, { what: `${name} to run` }).then(
    () => undefined,
  );
const waiting = async (): Promise<number> => redis.zcard('{berth}:gpu:gpu:prioritized');
const queued = async (count: number): Promise<void> =>
  eventually(async () => (await waiting()) === count, { what: `${count} waiting` }).then(
    () => undefined,
  );
const ends = (): { status: number; phase: string; code?: string }[] =>
  berth
    .output()
    .split('\n')
    .filter((line) => line.includes('"request.ended"'))
    .map((line) => JSON.parse(line) as { status: number; phase: string; code?: string });
const counted = async (series: string): Promise<number> => {
  const text = await (await fetch(`${berth.url}/berth/metrics`)).text();
  const line = text.split('\n').find((one) => one.startsWith(series));
  return Number(line?.split(' ').at(-1) ?? 0);
};

describe('a client that leaves', () => {
  test('the queue: its job is gone within a second, the running one is not touched, and it counts as 499', async () => {
    const before = await counted('berth_requests_total{status="499"');
    const gate = streams.hold('runs');
    const running = post('runs');
    await reached('runs');
    const leave = new AbortController();
    const leaver = post('leaver', leave.signal).catch((error: unknown) => error);
    await queued(1);
    const leftAt = performance.now();
    leave.abort();
    await queued(0);
    expect(performance.now() - leftAt).toBeLessThan(1000);
    await leaver;
    gate.release();
    expect(await (await running).json()).toEqual({ ok: true });
    expect(await (await post('next')).json()).toEqual({ ok: true });
    expect(streams.socketOf('leaver')).toBeUndefined();
    expect(ends()).toContainEqual(
      expect.objectContaining({ status: 499, phase: 'waiting', code: 'client_closed' }),
    );
    expect(await counted('berth_requests_total{status="499"')).toBe(before + 1);
    expect(await counted('berth_retries_total{code="model_server_truncated"')).toBe(0);
  });

  test.each([
    ['before the head', ''],
    ['after the head of a stream', chunkedHead() + chunkOf('data: {"choices":[]}\n\n')],
  ])(
    'while it runs, %s: the model server is hung up on within a second, and the next job runs',
    async (when, sent) => {
      const name = `abandoned ${when}`;
      let hungUpAt = 0;
      streams.set(name, (socket) => {
        socket.on('close', () => (hungUpAt = performance.now()));
        socket.write(sent);
      });
      const leave = new AbortController();
      const answer = post(name, leave.signal, { stream: true });
      answer.catch(() => undefined);
      await reached(name);
      if (sent !== '') await answer;
      const leftAt = performance.now();
      leave.abort();
      await eventually(() => hungUpAt > 0, { what: 'the upstream connection to close' });
      expect(hungUpAt - leftAt).toBeLessThan(1000);
      expect((await post('next')).status).toBe(200);
      await eventually(
        () => ends().some(({ status, phase }) => status === 499 && phase !== 'waiting'),
        { what: 'a 499' },
      );
    },
  );
});

describe('a client that closes its sending side and reads on', () => {
  test.each(['1.1', '1.0'])('gets an answer that comes soon, in HTTP/%s', async (version) => {
    const client = await RawClient.to(berth.url);
    client.socket.end(raw('soon', version));
    await eventually(() => client.isClosed, { what: 'the end' });
    expect(client.text).toMatch(/^HTTP\/1\.1 200 /);
    expect(client.text).toContain('{"ok":true}');
  });

  test('gets an answer that takes its time, behind interim answers', async () => {
    const gate = streams.hold('late');
    const client = await RawClient.to(berth.url);
    client.socket.end(raw('late'));
    await reached('late');
    await client.until((text) => text.split('102 Processing').length > 2);
    gate.release();
    await eventually(() => client.isClosed, { what: 'the end' });
    expect(client.text).toMatch(/^(HTTP\/1\.1 102 Processing\r\n\r\n)+HTTP\/1\.1 200 /);
    expect(client.text).toContain('{"ok":true}');
  });

  test('gets it as an HTTP client that knows nothing of interim answers asks for it', async () => {
    const gate = streams.hold('node');
    const text = new Promise<string>((resolve, reject) => {
      const outgoing = request(`${berth.url}/v1/chat/completions`, {
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json', [NAME_HEADER]: 'node' },
      });
      outgoing.on('error', reject);
      outgoing.on('response', (incoming) => {
        let all = '';
        incoming.setEncoding('utf8').on('data', (piece: string) => (all += piece));
        incoming.on('end', () => resolve(all));
      });
      outgoing.on('information', () => gate.release());
      outgoing.end(body(), () => outgoing.socket?.end());
    });
    expect(await text).toBe('{"ok":true}');
  });
});

test('a waiter whose job is cancelled gets a real error', async () => {
  const gate = streams.hold('busy');
  const running = post('busy');
  await reached('busy');
  const cancelled = post('cancelled');
  await queued(1);
  const [id = ''] = await redis.zrange('{berth}:gpu:gpu:prioritized', '0', '-1');
  const queue = new BullJobQueue({
    redis,
    keys: poolKeys('gpu'),
    ingressId: 'other',
    waitingCap: 10,
    maxAttempts: 5,
    keep: KEEP_TIMES,
  });
  expect(await queue.abandon(id, 'cancelled')).toBe('evicted');
  const response = await cancelled;
  expect([response.status, await response.json()]).toEqual([
    409,
    expect.objectContaining({
      src: 'berth',
      error: expect.objectContaining({ code: 'cancelled' }),
    }),
  ]);
  gate.release();
  expect((await running).status).toBe(200);
  await queue.close();
});

test.each([
  ['text/plain', 'text/plain; charset=utf-8', /^berth: the model server cannot be reached\n$/],
  ['text/html,*/*', 'text/html; charset=utf-8', /<h1>502 Bad Gateway<\/h1>/],
  ['application/json, text/plain, */*', 'application/json', /^\{"src":"berth"/],
])('an error of ours for %s is %s', async (accept, type, form) => {
  streams.set('hangs up', (socket) => void socket.destroy());
  const response = await fetch(`${berth.url}/health`, {
    headers: { accept, [NAME_HEADER]: 'hangs up' },
  });
  expect(response.status).toBe(502);
  expect(response.headers.get('content-type')).toBe(type);
  expect(await response.text()).toMatch(form);
});

describe('an answer that only looks whole', () => {
  const outcomeOf = (id: string | null): unknown =>
    berth
      .output()
      .split('\n')
      .filter((line) => line.includes('"job.settled"') && line.includes(String(id)))
      .map((line) => JSON.parse(line) as { outcome: string; code: string })
      .map(({ outcome, code }) => [outcome, code])
      .at(0) ?? null;
  const settled = async (id: string | null): Promise<unknown> =>
    eventually(() => outcomeOf(id) as object | null, { what: 'the job to be settled' });

  test.each([
    ['nothing', answerOf(200, 'application/json', ''), 502, 'model_server_invalid'],
    ['an empty stream', `${chunkedHead()}0\r\n\r\n`, 502, 'model_server_invalid'],
    ['a web page', answerOf(200, 'text/html', '<html>sign in</html>'), 502, 'model_server_invalid'],
    ['a page of a proxy', answerOf(502, 'text/html', '<html>'), 502, 'model_server_unreachable'],
    [
      'old error',
      answerOf(503, 'application/json', '{"src":"llama-swap","error":"no"}'),
      503,
      'model_unavailable',
    ],
  ])(
    '%s: the job fails and the client sees it',
    async (name, bytes, status, code) => {
      streams.set(name, (socket) => void socket.write(bytes));
      const response = await post(name);
      expect(response.status).toBe(status);
      await response.text();
      expect(await settled(response.headers.get('x-berth-job-id'))).toEqual(['failed', code]);
    },
    30_000,
  );

  test.each([
    ['half of its JSON', `${chunkedHead('application/json')}${chunkOf('{"choices":[')}0\r\n\r\n`],
    [
      'less than its length',
      'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"a"',
    ],
    ['a cut body', chunkedHead('audio/wav') + chunkOf('RIFF')],
  ])('%s: the job fails and the connection is cut', async (name, bytes) => {
    streams.set(name, (socket) => void socket.write(bytes, () => socket.end()));
    const response = await post(name);
    await expect(response.text()).rejects.toThrow('terminated');
    expect(await settled(response.headers.get('x-berth-job-id'))).toEqual([
      'failed',
      'model_server_truncated',
    ]);
  });

  test.each([
    ['no last word', ['data: {"choices":[{"delta":{}}]}\n\n'], 'model_server_truncated', true],
    ['an error', ['data: {"error":{"code":400}}\n\n'], 'model_server_invalid', false],
    [
      'an error line',
      ['error: {"code":400}\n\n', 'data: [DONE]\n\n'],
      'model_server_invalid',
      false,
    ],
  ])(
    'a stream with %s: the job fails, and the client is told once',
    async (name, events, code, isTold) => {
      streams.set(name, (socket) => {
        socket.write(`${chunkedHead()}${events.map(chunkOf).join('')}0\r\n\r\n`);
      });
      const response = await post(name, null, { stream: true });
      const text = await response.text();
      expect(text.startsWith(events.join(''))).toBe(true);
      expect(text.slice(events.join('').length)).toMatch(
        isTold ? /^data: \{"src":"berth","error":.*\}\n\n$/ : /^$/,
      );
      expect(await settled(response.headers.get('x-berth-job-id'))).toEqual(['failed', code]);
    },
  );
});
