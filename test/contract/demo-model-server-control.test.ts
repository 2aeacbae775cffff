import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startDemoModelServer();
});

afterEach(() => server.close());

const chat = (model = 'demo-chat-small', fields: object = {}): Promise<Response> =>
  fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: 'Bearer canary' },
    body: JSON.stringify({ model, messages: [], max_tokens: 3, ...fields }),
  });

async function json<T>(path: string): Promise<T> {
  const response = await fetch(server.url + path);
  expect(response.status).toBe(200);
  return (await response.json()) as T;
}

interface Page {
  readonly data: { readonly id: number; readonly model: string; readonly tokens: object }[];
  readonly total: number;
  readonly total_pages: number;
}

describe('the log', () => {
  test('tells of requests and models, whole and by source, and leaves queries out', async () => {
    await (await chat()).text();
    await fetch(`${server.url}/nowhere?secret=1`);
    const log = await (await fetch(`${server.url}/logs`)).text();
    expect(log).toMatch(/^\[demo-chat-small\] ready$/m);
    expect(log).toMatch(/"POST \/v1\/chat\/completions HTTP\/1.1" 200 \d+ "/);
    expect(log).toContain('"GET /nowhere HTTP/1.1" 404');
    expect(log).not.toMatch(/secret|canary/);
    const page = await fetch(`${server.url}/logs`, {
      headers: { accept: 'text/html' },
      redirect: 'manual',
    });
    expect([page.status, page.headers.get('location')]).toEqual([302, '/ui/']);
    expect((await fetch(`${server.url}/logs/stream/nobody`)).status).toBe(400);
  });

  test.each([
    ['', ['[demo-chat-small] ready', '"POST']],
    ['/proxy', ['"POST']],
    ['/upstream', ['[demo-chat-small] ready']],
    ['/demo-chat', ['[demo-chat-small] ready']],
    ['/demo/org-chat', []],
  ])('its stream%s follows what comes', async (name, expected) => {
    const leave = new AbortController();
    const stream = await fetch(`${server.url}/logs/stream${name}?no-history`, {
      signal: leave.signal,
    });
    let text = '';
    const read = async (): Promise<void> => {
      for await (const piece of stream.body ?? [])
        text += Buffer.from(piece as Uint8Array).toString();
    };
    read().catch(() => undefined);
    await (await chat()).text();
    await eventually(() => expected.every((piece) => text.includes(piece)), { what: 'the lines' });
    for (const other of ['[demo-chat-small] ready', '"POST'])
      if (!expected.includes(other)) expect(text).not.toContain(other);
    leave.abort();
  });
});

describe('the activity', () => {
  test('has a row for each metered request, its tokens, and what was said', async () => {
    await (await chat()).text();
    await (await chat('demo-chat-large', { stream: true })).text();
    await fetch(`${server.url}/props?model=demo-chat`);
    const page = await json<Page>('/api/metrics/activity');
    expect(page.data.map(({ id, model }) => [id, model])).toEqual([
      [2, 'demo-chat-large'],
      [1, 'demo-chat-small'],
    ]);
    expect(page.data[1]).toMatchObject({
      req_path: '/v1/chat/completions',
      resp_status_code: 200,
      resp_content_type: 'application/json; charset=utf-8',
      has_capture: true,
      tokens: { output_tokens: 3 },
    });
    const capture = await json<{ req_headers: object; resp_body: string }>('/api/captures/2');
    expect(Buffer.from(capture.resp_body, 'base64').toString()).toMatch(/^data: .*\[DONE\]\n\n$/s);
    expect(capture.req_headers).toMatchObject({ authorization: '[REDACTED]' });
    const stats = await json('/api/metrics/stats?model=demo-chat-small');
    expect(stats).toMatchObject({
      total_requests: 1,
      total_output_tokens: 3,
      gen_histogram: { bins: [1] },
    });
    expect(await json('/api/metrics/stats')).toMatchObject({ total_requests: 2 });
    expect((await fetch(`${server.url}/api/captures/9`)).status).toBe(404);
    expect((await fetch(`${server.url}/api/captures/x`)).status).toBe(400);
  });

  test('is read in pages, by model, id and time, in the order asked for', async () => {
    for (const model of ['demo-chat-small', 'demo-embed', 'demo-chat-small'])
      await (await chat(model)).text();
    const ids = async (query: string): Promise<number[]> =>
      (await json<Page>(`/api/metrics/activity?${query}`)).data.map(({ id }) => id);
    expect(await ids('limit=2&page=2')).toEqual([1]);
    expect(await ids('order=asc&min_id=2&max_id=3')).toEqual([2, 3]);
    expect(await ids('model=demo-embed&model=nobody')).toEqual([2]);
    expect(await ids('sort=model&order=asc')).toEqual([1, 3, 2]);
    expect(await ids('start=2100-01-01T00:00:00Z')).toEqual([]);
    for (const query of [
      'limit=0',
      'limit=1000',
      'page=0',
      'sort=x',
      'order=x',
      'start=x',
      'min_id=x',
    ])
      expect((await fetch(`${server.url}/api/metrics/activity?${query}`)).status).toBe(400);
  });
});

describe('a cancel', () => {
  const cancel = (id: number): Promise<Response> =>
    fetch(`${server.url}/api/inflight/${id}/cancel`, { method: 'POST' });

  test('ends running work: an empty 502 before the answer began, a tidy end in its middle', async () => {
    const gate = server.hold();
    const silent = chat();
    const { id } = await gate.arrived;
    expect(await (await cancel(id)).json()).toEqual({ msg: 'ok' });
    expect([(await silent).status, await (await silent).text()]).toEqual([502, '']);
    expect((await cancel(id)).status).toBe(404);
    gate.release();

    server.fault({ kind: 'cut', afterWrites: 2, how: 'silence' });
    const streamed = await chat('demo-chat-small', { stream: true });
    const request = server.generations().at(-1);
    await cancel(Number(request?.id));
    expect(await streamed.text()).not.toContain('[DONE]');
    expect(request?.endedAtMs).not.toBeNull();
  });

  test('of what waits for its model gives an empty 200, and the model is not loaded for it', async () => {
    const gate = server.hold();
    const running = chat();
    await gate.arrived;
    const waiting = chat('demo-chat-large');
    await eventually(() => server.attempts().length === 2, { what: 'the waiting request' });
    await cancel(Number(server.attempts().at(-1)?.id));
    expect([(await waiting).status, await (await waiting).text()]).toEqual([200, '']);
    gate.release();
    expect((await running).status).toBe(200);
    expect(server.loads).toBe(1);
  });

  test('knows only its own path', async () => {
    const asked = await fetch(`${server.url}/api/inflight/1/stop`, { method: 'POST' });
    expect([asked.status, await asked.text()]).toEqual([404, '404 page not found\n']);
  });
});

describe('the machine', () => {
  test('its GPU follows the models', async () => {
    const used = async (): Promise<number> => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/^llamaswap_gpu_memory_used_bytes\{[^}]*\} (\d+)$/m.exec(text)?.[1]);
    };
    expect(await used()).toBe(0);
    await (await chat()).text();
    const small = await used();
    expect(small).toBeGreaterThan(0);
    await (await chat('demo-chat-large')).text();
    expect(await used()).not.toBe(small);
  });

  test('performance gives the looks after a time, hardware what there is', async () => {
    await fetch(`${server.url}/api/performance`);
    const all = await json<{ gpu_stats: { timestamp: string }[] }>('/api/performance');
    expect(all).toMatchObject({ enabled: true, gpu_stats: [{}, {}], sys_stats: [{}, {}] });
    const later = await json('/api/performance?after=2100-01-01T00:00:00Z');
    expect(later).toEqual({ enabled: true, gpu_stats: [], sys_stats: [] });
    expect((await fetch(`${server.url}/api/performance?after=x`)).status).toBe(400);
    expect(await json('/api/hardware')).toMatchObject({ gpus: [{ name: 'Demo GPU' }] });
  });
});

test.each([
  ['GET', '/ui', 307, '/ui/'],
  ['GET', '/upstream', 302, '/ui/models'],
])('%s %s redirects with %d to %s', async (method, path, status, location) => {
  const response = await fetch(server.url + path, { method, redirect: 'manual' });
  expect([response.status, response.headers.get('location')]).toEqual([status, location]);
});

test.each([
  ['/ui/', 200, 'text/html; charset=utf-8'],
  ['/ui/models/some', 200, 'text/html; charset=utf-8'],
  ['/ui/app.js', 404, 'text/plain; charset=utf-8'],
  ['/favicon.ico', 200, 'image/x-icon'],
])('%s is a %d of %s, packed or not', async (path, status, type) => {
  for (const packing of ['identity', 'br']) {
    const response = await fetch(server.url + path, { headers: { 'accept-encoding': packing } });
    expect([response.status, response.headers.get('content-type')]).toEqual([status, type]);
    expect(await response.text()).not.toBe('');
  }
});
