import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import type { FurtherIngress } from '../support/berth-system.ts';
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
let other: FurtherIngress;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({ modelServerUrl: upstream.url });
  other = await berth.addIngress();
});
afterAll(async () => {
  await berth.stop();
  await upstream.close();
});

interface Asking {
  headers?: Record<string, string>;
  stream?: boolean;
  pad?: string;
}

async function ask(
  url: string,
  name: string,
  { headers, ...rest }: Asking = {},
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [NAME_HEADER]: name, ...headers },
    body: JSON.stringify({ model: 'm', ...rest }),
  });
}
async function later(url: string, name: string, asking: Asking = {}): Promise<JobObject> {
  const headers = { prefer: 'respond-async', ...asking.headers };
  const response = await ask(url, name, { ...asking, headers });
  expect(response.status).toBe(202);
  return (await response.json()) as JobObject;
}
const jobAt = async (url: string, id: string, query = ''): Promise<JobObject> =>
  (await (await fetch(`${url}/berth/jobs/${id}${query}`)).json()) as JobObject;
const endAt = async (url: string, id: string): Promise<JobObject> =>
  eventually(
    async () => {
      const job = await jobAt(url, id, '?wait=5');
      return job.state === 'waiting' || job.state === 'running' ? null : job;
    },
    { what: `the end of ${id}`, timeoutMs: 20_000 },
  );
const requestsOf = (name: string): number =>
  upstream.requests.filter(({ headers }) => headers.includes(`${NAME_HEADER}: ${name}`)).length;
const reached = async (name: string): Promise<void> => {
  await eventually(() => streams.socketOf(name) !== undefined, { what: `${name} to run` });
};
const delta = (text: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ delta: { content: text }, finish_reason: finish }] })}\n\n`;

test('a job submitted at one is followed, read and listed at the other, with the same bytes', async () => {
  const job = await later(berth.url, 'read there');
  expect(await endAt(other.url, job.id)).toMatchObject({ id: job.id, state: 'completed' });
  expect(await jobAt(other.url, job.id)).toEqual(await jobAt(berth.url, job.id));
  const [here, there] = await Promise.all(
    [berth.url, other.url].map(async (url) => {
      const response = await fetch(`${url}/berth/jobs/${job.id}/result`);
      const headers = [...response.headers].filter(([name]) => name !== 'date');
      return { status: response.status, headers, text: await response.text() };
    }),
  );
  expect(there).toEqual(here);
  expect(there?.text).toBe('{"ok":true}');
  const list = (await (await fetch(`${other.url}/berth/jobs`)).json()) as { data: JobObject[] };
  expect(list.data.map(({ id }) => id)).toContain(job.id);
});

test('a large request taken in at one runs, and its large answer is read at the other', async () => {
  const large = randomBytes(1_000_000);
  const pad = 'x'.repeat(400_000);
  streams.set('large', (socket) => {
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nContent-Length: ${large.length}\r\n\r\n`,
    );
    socket.write(large);
  });
  const job = await later(other.url, 'large', { pad });
  expect(await endAt(berth.url, job.id)).toMatchObject({ state: 'completed' });
  const request = upstream.requests.find(({ headers }) =>
    headers.includes(`${NAME_HEADER}: large`),
  );
  expect(request?.body.toString()).toBe(JSON.stringify({ model: 'm', pad }));
  for (const { url } of [berth, other]) {
    const answer = await fetch(`${url}/berth/jobs/${job.id}/result`);
    expect(large.equals(Buffer.from(await answer.arrayBuffer()))).toBe(true);
  }
});

test('a job submitted at one is cancelled at the other, running or waiting, and stays cancelled at both', async () => {
  let hungUp = false;
  streams.set('cancelled there', (socket) => {
    socket.on('close', () => (hungUp = true));
  });
  const running = await later(berth.url, 'cancelled there');
  await reached('cancelled there');
  const waiting = await later(berth.url, 'never runs');
  for (const { id } of [waiting, running]) {
    const response = await fetch(`${other.url}/berth/jobs/${id}`, { method: 'DELETE' });
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ id, state: 'cancelled' });
    for (const { url } of [berth, other])
      expect(await jobAt(url, id)).toMatchObject({ state: 'cancelled' });
  }
  await eventually(() => hungUp, { what: 'the abort' });
  const next = await later(other.url, 'runs next');
  expect(await endAt(berth.url, next.id)).toMatchObject({ state: 'completed' });
  expect(requestsOf('never runs')).toBe(0);
});

test('a sync client at one is told when its job is cancelled at the other', async () => {
  streams.set('blocks', () => undefined);
  const blocking = await later(berth.url, 'blocks');
  await reached('blocks');
  const waiting = ask(berth.url, 'sync', { headers: { 'idempotency-key': 'sync' } });
  const id = await eventually(
    async () => {
      const page = await fetch(`${other.url}/berth/jobs?state=waiting`);
      const { data } = (await page.json()) as { data: JobObject[] };
      return data[0]?.id ?? null;
    },
    { what: 'the sync job' },
  );
  await fetch(`${other.url}/berth/jobs/${id}`, { method: 'DELETE' });
  const response = await waiting;
  expect(response.status).toBe(409);
  expect(await response.json()).toMatchObject({ error: { code: 'cancelled' } });
  await fetch(`${other.url}/berth/jobs/${blocking.id}`, { method: 'DELETE' });
});

test('a submission repeated at the other is the same job, waiting, running, ended, and at both at once', async () => {
  const gate = streams.hold('repeated');
  const headers = { 'idempotency-key': 'k-repeated' };
  const atOnce = await Promise.all(
    Array.from({ length: 20 }, async (_, index) =>
      later(index % 2 === 0 ? berth.url : other.url, 'repeated', { headers }),
    ),
  );
  const ids = new Set(atOnce.map(({ id }) => id));
  expect(ids.size).toBe(1);
  await reached('repeated');
  const [id = ''] = ids;
  expect(await later(other.url, 'repeated', { headers })).toMatchObject({ id, state: 'running' });
  // A sync client of the same key gets the answer of the job that the other ingress took in.
  const sync = ask(other.url, 'repeated', { headers });
  gate.release();
  expect(await (await sync).text()).toBe('{"ok":true}');
  expect((await sync).headers.get('x-berth-job-id')).toBe(id);
  expect(await later(other.url, 'repeated', { headers })).toMatchObject({ id, state: 'completed' });
  const mismatch = await ask(other.url, 'repeated', { headers, pad: 'other' });
  expect(mismatch.status).toBe(422);
  expect(requestsOf('repeated')).toBe(1);
});

const PIECES = ['one ', 'zwölf ', 'три ', '四 ', '🎬 '].map((text) => delta(text));
const LAST = `${delta('', 'stop')}data: [DONE]\n\n`;
const WHOLE = Buffer.from(PIECES.join('') + LAST);
/** In the middle of an event, and of a character. */
const CUTS = [1, WHOLE.indexOf('ö') + 1, WHOLE.indexOf('四') + 2, WHOLE.indexOf('🎬') + 3];

interface Resumption {
  how: string;
  target: (id: string, offset: number) => string;
  headers: (offset: number) => string;
}

test.each<Resumption>([
  {
    how: 'Last-Event-ID',
    target: (id) => `/berth/jobs/${id}/stream`,
    headers: (offset) => `Last-Event-ID: 1-${offset}\r\n`,
  },
  {
    how: '?offset=',
    target: (id, offset) => `/berth/jobs/${id}/stream?offset=${offset}`,
    headers: () => '',
  },
])(
  'clients cut off at one in mid-stream go on at the other with $how, to exactly the bytes of one that was not cut off',
  async ({ how, target, headers }) => {
    const name = `streamed ${how}`;
    let send: (text: string) => void = () => undefined;
    streams.set(name, (socket) => {
      socket.write(chunkedHead());
      send = (text) => socket.write(text);
    });
    const job = await later(berth.url, name, { stream: true });
    await reached(name);
    const open = async (url: string, offset: number): Promise<RawClient> => {
      const client = await RawClient.to(url);
      const resumed = offset === 0 ? '' : headers(offset);
      const path = offset === 0 ? `/berth/jobs/${job.id}/stream` : target(job.id, offset);
      await client.send(`GET ${path} HTTP/1.0\r\nHost: 127.0.0.1\r\n${resumed}\r\n`);
      return client;
    };
    const bodyOf = ({ bytes }: RawClient): Buffer => {
      const headEnd = bytes.indexOf('\r\n\r\n');
      return bytes.subarray(headEnd < 0 ? bytes.length : headEnd + 4);
    };
    const uncut = await open(berth.url, 0);
    const first = await Promise.all(CUTS.map(async () => open(berth.url, 0)));
    for (const piece of PIECES) send(chunkOf(piece));
    await Promise.all(
      first.map(async (client) => client.until(() => bodyOf(client).length >= Math.max(...CUTS))),
    );
    // Whatever else came is taken for lost on the way.
    const kept = first.map((client, index) => bodyOf(client).subarray(0, CUTS[index]));
    for (const client of first) client.leave();
    const second = await Promise.all(kept.map(async ({ length }) => open(other.url, length)));
    send(chunkOf(LAST) + LAST_CHUNK);
    await Promise.all([uncut, ...second].map(async (client) => client.closed()));
    expect(bodyOf(uncut).equals(WHOLE)).toBe(true);
    for (const [index, client] of second.entries()) {
      const begun = kept[index] ?? Buffer.alloc(0);
      expect(Buffer.concat([begun, bodyOf(client)]).equals(WHOLE)).toBe(true);
    }
    // The same when the stream has ended meanwhile.
    const late = await open(other.url, Number(CUTS[1]));
    await late.closed();
    expect(bodyOf(late).equals(WHOLE.subarray(CUTS[1]))).toBe(true);
    expect(requestsOf(name)).toBe(1);
  },
);

test('the death of one with SIGKILL neither cuts a stream at the other nor touches jobs it had taken in', async () => {
  let send: (text: string) => void = () => undefined;
  streams.set('goes on', (socket) => {
    socket.write(chunkedHead());
    send = (text) => socket.write(text);
  });
  const streaming = await later(other.url, 'goes on', { stream: true });
  await reached('goes on');
  const taken = await later(other.url, 'taken in');
  const client = await RawClient.to(berth.url);
  await client.send(`GET /berth/jobs/${streaming.id}/stream HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n`);
  send(chunkOf(PIECES[0] ?? ''));
  await client.until((text) => text.includes('one '));
  await other.process.kill('SIGKILL');
  send(chunkOf(LAST) + LAST_CHUNK);
  const text = await client.closed();
  expect(text.endsWith(`${PIECES[0] ?? ''}${LAST}`)).toBe(true);
  expect(await endAt(berth.url, taken.id)).toMatchObject({ state: 'completed' });
  await other.restart();
  expect(await jobAt(other.url, taken.id)).toMatchObject({ state: 'completed' });
});
