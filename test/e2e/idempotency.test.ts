import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { RawUpstream } from '../support/raw-upstream.ts';
import {
  chunkedHead,
  chunkOf,
  LAST_CHUNK,
  NAME_HEADER,
  ScriptedStreams,
} from '../support/scripted-streams.ts';

const config = fileURLToPath(new URL('../support/short-grace.config.json', import.meta.url));
const GRACE_MS = 2000;

let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;
let redis: ReturnType<typeof connectRedis>;
const held: { release: () => void }[] = [];

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({
    modelServerUrl: upstream.url,
    env: { BERTH_CONFIG: path.resolve(config) },
  });
  redis = connectRedis(berth.redis.url, 'patient', () => undefined);
});
afterAll(async () => {
  redis.disconnect();
  await berth.stop();
  await upstream.close();
});
afterEach(() => {
  for (const gate of held.splice(0)) gate.release();
});

async function ask(
  name: string,
  key: string,
  {
    rest = {},
    headers = {},
    signal = null,
  }: { rest?: object; headers?: Record<string, string>; signal?: AbortSignal | null } = {},
): Promise<Response> {
  return fetch(`${berth.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'idempotency-key': key,
      [NAME_HEADER]: name,
      ...headers,
    },
    body: JSON.stringify({ model: 'm', ...rest }),
    signal,
  });
}

const jobs = async (): Promise<JobObject[]> => {
  const response = await fetch(`${berth.url}/berth/jobs?limit=100`);
  return ((await response.json()) as { data: JobObject[] }).data;
};
const waiting = async (): Promise<number> => redis.zcard('{berth}:gpu:gpu:prioritized');
const queued = async (count: number): Promise<void> => {
  await eventually(async () => (await waiting()) === count, { what: `${count} waiting` });
};
const reached = async (name: string): Promise<void> => {
  await eventually(() => streams.socketOf(name) !== undefined, { what: `${name} to run` });
};
function hold(name: string): { release: () => void } {
  const gate = streams.hold(name);
  held.push(gate);
  return gate;
}
const requests = (name: string): number =>
  upstream.requests.filter(({ headers }) => headers.includes(`${NAME_HEADER}: ${name}`)).length;

describe('an Idempotency-Key', () => {
  test('makes a hundred submissions at once one job, which all of them get the answer of', async () => {
    const before = (await jobs()).length;
    const answers = await Promise.all(
      Array.from({ length: 100 }, async () => ask('parallel', 'k-parallel')),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    const ids = new Set(answers.map(({ headers }) => headers.get('x-berth-job-id')));
    expect(ids.size).toBe(1);
    const bodies = new Set(await Promise.all(answers.map(async (answer) => answer.text())));
    expect([...bodies]).toEqual(['{"ok":true}']);
    expect(requests('parallel')).toBe(1);
    expect((await jobs()).length).toBe(before + 1);
    const [id] = ids;
    expect(id).not.toContain('k-parallel');
    const again = await ask('parallel', 'k-parallel');
    expect(again.headers.get('x-berth-job-id')).toBe(id);
    expect(await again.text()).toBe('{"ok":true}');
    expect(requests('parallel')).toBe(1);
  });

  test('with another body or at another route is refused; of another member it is another key', async () => {
    expect((await ask('first', 'k-body')).status).toBe(200);
    const other = await ask('first', 'k-body', { rest: { x: 1 } });
    expect(other.status).toBe(422);
    expect(await other.json()).toMatchObject({
      error: { code: 'idempotency_mismatch', param: 'Idempotency-Key' },
    });
    const bob = await ask('first', 'k-body', { headers: { 'x-berth-member': 'bob' } });
    expect(bob.status).toBe(200);
    expect(requests('first')).toBe(2);
    for (const key of ['', 'x'.repeat(256)]) expect((await ask('first', key)).status).toBe(400);
  });

  test('of an async job gives the same job again, also after its end', async () => {
    const headers = { prefer: 'respond-async' };
    const first = (await (await ask('async', 'k-async', { headers })).json()) as JobObject;
    await eventually(() => requests('async') === 1, { what: 'the run' });
    const second = await ask('async', 'k-async', { headers });
    expect(second.status).toBe(202);
    expect(await second.json()).toMatchObject({ id: first.id });
    const sync = await ask('async', 'k-async');
    expect(sync.headers.get('x-berth-job-id')).toBe(first.id);
    expect(await sync.text()).toBe('{"ok":true}');
    expect(requests('async')).toBe(1);
  });
});

describe('a sync client with a key that leaves', () => {
  test('the running answer gets it from its first byte when it comes back', async () => {
    let send: (text: string) => void = () => undefined;
    streams.set('resumed', (socket) => {
      socket.write(chunkedHead() + chunkOf('data: {"choices":[{"delta":{"content":"a"}}]}\n\n'));
      send = (text) => socket.write(text);
    });
    const leave = new AbortController();
    const rest = { stream: true };
    const first = await ask('resumed', 'k-resumed', { rest, signal: leave.signal });
    expect(first.status).toBe(200);
    leave.abort();
    await first.text().catch(() => undefined);
    const second = await ask('resumed', 'k-resumed', { rest });
    send(chunkOf('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'));
    send(LAST_CHUNK);
    const text = await second.text();
    expect(text.startsWith('data: {"choices":[{"delta":{"content":"a"}}]}')).toBe(true);
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true);
    expect(second.headers.get('x-berth-job-id')).toBe(first.headers.get('x-berth-job-id'));
    expect(requests('resumed')).toBe(1);
  });

  test('the queue keeps its place for a while, and is given up after that', async () => {
    const gate = hold('in front');
    const front = ask('in front', 'k-front');
    await reached('in front');
    const leave = new AbortController();
    const left = ask('left', 'k-left', { signal: leave.signal });
    left.catch(() => undefined);
    await queued(1);
    const behind = ask('behind', 'k-behind');
    await queued(2);
    const leftAt = performance.now();
    leave.abort();
    await queued(1);
    expect(performance.now() - leftAt).toBeGreaterThan(GRACE_MS - 100);
    expect(performance.now() - leftAt).toBeLessThan(GRACE_MS + 2000);
    gate.release();
    expect((await front).status).toBe(200);
    expect((await behind).status).toBe(200);
    expect(requests('left')).toBe(0);
    // Its key stands for nothing any more.
    expect((await ask('left', 'k-left')).status).toBe(200);
    expect(requests('left')).toBe(1);
  });

  test('the queue and comes back in time is answered, however long it takes then', async () => {
    const gate = hold('long before');
    const before = ask('long before', 'k-long');
    await reached('long before');
    const leave = new AbortController();
    const left = ask('returns', 'k-returns', { signal: leave.signal });
    left.catch(() => undefined);
    await queued(1);
    leave.abort();
    await left.catch(() => undefined);
    const back = ask('returns', 'k-returns');
    // What was due is over when something that became due later has happened.
    const other = new AbortController();
    const gone = ask('gone', 'k-gone', { signal: other.signal });
    gone.catch(() => undefined);
    await queued(2);
    other.abort();
    await queued(1);
    gate.release();
    expect((await before).status).toBe(200);
    expect((await back).status).toBe(200);
    expect(requests('returns')).toBe(1);
    expect(requests('gone')).toBe(0);
  });

  test('a running job for good: it is aborted after the grace, and the next one runs', async () => {
    let hungUpAt = 0;
    streams.set('abandoned', (socket) => {
      socket.on('close', () => (hungUpAt = performance.now()));
    });
    const leave = new AbortController();
    const left = ask('abandoned', 'k-abandoned', { signal: leave.signal });
    left.catch(() => undefined);
    await reached('abandoned');
    const leftAt = performance.now();
    leave.abort();
    await eventually(() => hungUpAt > 0, { what: 'the abort', timeoutMs: 8000 });
    expect(hungUpAt - leftAt).toBeGreaterThan(GRACE_MS - 100);
    expect((await ask('next', 'k-next')).status).toBe(200);
  });

  test('because its ingress died finds its job again at the next one', async () => {
    const gate = hold('orphan');
    const lost = ask('orphan', 'k-orphan').catch(() => undefined);
    await reached('orphan');
    await berth.processes.ingress?.kill('SIGKILL');
    await lost;
    await berth.startProcess('ingress');
    await berth.ready();
    const back = ask('orphan', 'k-orphan');
    gate.release();
    expect(await (await back).text()).toBe('{"ok":true}');
    expect(requests('orphan')).toBe(1);
  });
});
