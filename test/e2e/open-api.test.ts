import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { FilmObject } from '../../src/gateway/film-view.ts';
import type { JobObject } from '../../src/gateway/job-object.ts';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { DocumentCheck } from '../support/open-api.ts';
import { chat } from '../support/requests.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

const CHAT = '/v1/chat/completions';
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

let model: ScriptedModelServer;
let receiver: WebhookReceiver;
let berth: BerthSystem;
let check: DocumentCheck;

beforeAll(async () => {
  model = await startDemoModelServer();
  receiver = await WebhookReceiver.open();
  berth = await BerthSystem.start({
    modelServerUrl: model.url,
    env: { WEBHOOK_ALLOW_PRIVATE: '1' },
  });
  check = new DocumentCheck(await (await fetch(`${berth.url}/berth/openapi.json`)).json());
});
afterAll(async () => {
  await berth.stop();
  await receiver.close();
  await model.close();
});

interface Asked {
  id?: string;
  query?: string;
  init?: RequestInit;
}

/** Calls an operation by its documented path; its answer has to be as the document says. Returns the body's text. */
async function expectCall(
  method: string,
  path: string,
  status: number,
  { id = '', query = '', init = {} }: Asked = {},
): Promise<string> {
  const response = await fetch(`${berth.url}${path.replace('{id}', id)}${query}`, {
    ...init,
    method: method.toUpperCase(),
  });
  const body = await response.text();
  expect([method, path, response.status]).toEqual([method, path, status]);
  expect([body, check.answerFaults(method, path, response, body)]).toEqual([body, []]);
  return body;
}

const later = async (text: string, headers: Record<string, string> = {}): Promise<JobObject> => {
  const init = chat(text);
  const all = { ...(init.headers as Record<string, string>), prefer: 'respond-async', ...headers };
  return JSON.parse(
    await expectCall('post', CHAT, 202, { init: { ...init, headers: all } }),
  ) as JobObject;
};

const ended = async (id: string): Promise<JobObject> =>
  eventually(
    async () => {
      const body = await expectCall('get', '/berth/jobs/{id}', 200, { id, query: '?wait=30' });
      const job = JSON.parse(body) as JobObject;
      return job.completed_at === null ? null : job;
    },
    { what: 'the end of the job', timeoutMs: 20_000 },
  );

/** Names and data of the events of a stream. */
const eventsIn = (text: string): [name: string, data: unknown][] =>
  [...text.matchAll(/^event: (\w+)\ndata: (.*)$/gm)].map(([, name, data]) => [
    String(name),
    JSON.parse(String(data)),
  ]);

/** All events of a stream are as the document has them, and those of `names` are among them. */
function expectEvents(
  text: string,
  names: readonly string[],
  schemas: Record<string, string>,
): void {
  const events = eventsIn(text);
  expect(events.map(([name]) => name)).toEqual(expect.arrayContaining([...names]));
  for (const [name, data] of events)
    expect([data, check.faults(String(schemas[name]), data)]).toEqual([data, []]);
}

test('jobs are answered as the document says, from the submission to the end', async () => {
  const gate = model.hold();
  const running = await later('runs', { 'x-berth-webhook': receiver.url('/told') });
  await gate.arrived;
  const waiting = await later('waits');
  await eventually(
    async () => {
      const queue = JSON.parse(await expectCall('get', '/berth/queue', 200)) as QueueView;
      return queue.running?.id === running.id && queue.waiting[0]?.id === waiting.id;
    },
    { what: 'both in the plan' },
  );
  await eventually(
    async () => {
      const body = await expectCall('get', '/berth/jobs/{id}', 200, { id: waiting.id });
      return (JSON.parse(body) as JobObject).position === 1;
    },
    { what: 'a position' },
  );
  await expectCall('get', '/berth/jobs/{id}/result', 404, { id: waiting.id });
  for (const { id } of [running, waiting])
    await expectCall('get', '/berth/jobs/{id}/explain', 200, { id });
  const events = expectCall('get', '/berth/jobs/{id}/events', 200, { id: waiting.id });
  const stream = expectCall('get', '/berth/jobs/{id}/stream', 200, { id: running.id });
  gate.release();
  expect(await stream).toContain('choices');
  expectEvents(await events, ['state', 'position'], {
    state: 'StateEvent',
    position: 'PositionEvent',
    progress: 'ProgressEvent',
  });
  const job = await ended(running.id);
  const { id } = job;
  await expectCall('get', '/berth/jobs', 200, {
    query: '?state=completed,running&limit=1&band=normal',
  });
  const whole = await expectCall('get', '/berth/jobs/{id}/result', 200, { id });
  const range = { headers: { range: 'bytes=1-4' } };
  expect(await expectCall('get', '/berth/jobs/{id}/result', 206, { id, init: range })).toBe(
    whole.slice(1, 5),
  );
  const far = { headers: { range: 'bytes=9999999-' } };
  await expectCall('get', '/berth/jobs/{id}/result', 416, { id, init: far });
  await expectCall('get', '/berth/jobs/{id}/stream', 200, { id, query: '?offset=5' });
  const seen = { headers: { 'last-event-id': '99-0' } };
  await expectCall('get', '/berth/jobs/{id}/events', 204, { id, init: seen });
  const response = await fetch(`${berth.url}/berth/jobs/${id}`);
  const known = { headers: { 'if-none-match': String(response.headers.get('etag')) } };
  await expectCall('get', '/berth/jobs/{id}', 304, { id, init: known });
  await expectCall('delete', '/berth/jobs/{id}', 200, { id });
  await eventually(() => receiver.calls.length === 1, { what: 'the event', timeoutMs: 10_000 });
  const told: unknown = JSON.parse(String(receiver.calls[0]?.body));
  expect([told, check.faults('JobEvent', told)]).toEqual([told, []]);
}, 60_000);

test('a synchronous answer and a job that has none are as the document says', async () => {
  await expectCall('post', CHAT, 200, { init: chat('now') });
  const gate = model.hold();
  await later('runs');
  await gate.arrived;
  const { id } = await later('is cancelled');
  const body = await expectCall('delete', '/berth/jobs/{id}', 200, { id });
  gate.release();
  expect(JSON.parse(body)).toMatchObject({ state: 'cancelled', error: { code: 'cancelled' } });
  await expectCall('get', '/berth/jobs/{id}/result', 409, { id });
}, 60_000);

test('films are answered as the document says, and what it accepts is what is accepted', async () => {
  const gate = model.hold();
  const body = { model: 'demo-chat-small', messages: [{ role: 'user', content: 'a shot' }] };
  const shots = [
    { path: CHAT, body, headers: { 'X-Note': '1' } },
    { path: CHAT, body },
  ];
  const init = { body: JSON.stringify({ shots }) };
  expect(check.faults('FilmRequest', { shots })).toEqual([]);
  const made = JSON.parse(await expectCall('post', '/berth/films', 202, { init })) as FilmObject;
  const { id } = made;
  await gate.arrived;
  await expectCall('get', '/berth/films/{id}', 200, { id });
  await expectCall('get', '/berth/films', 200);
  await expectCall('post', '/berth/films/{id}/skip', 400, { id });
  await expectCall('post', '/berth/films/{id}/pause', 200, { id });
  await expectCall('post', '/berth/films/{id}/resume', 200, { id });
  await expectCall('post', '/berth/films/{id}/retry', 200, { id });
  const events = expectCall('get', '/berth/films/{id}/events', 200, { id });
  gate.release();
  expectEvents(await events, ['film'], { film: 'FilmSummary' });
  await expectCall('get', '/berth/films/{id}', 200, { id });
  await expectCall('delete', '/berth/films/{id}', 200, { id });
  for (const wrong of [{}, { shots: [] }, { shots: [{ path: CHAT, body, speed: 2 }] }]) {
    expect(check.faults('FilmRequest', wrong)).not.toEqual([]);
    await expectCall('post', '/berth/films', 400, { init: { body: JSON.stringify(wrong) } });
  }
}, 60_000);

test('errors and the pages of the gateway are as the document says', async () => {
  await expectCall('get', '/berth/jobs/{id}', 404, { id: UNKNOWN });
  await expectCall('delete', '/berth/jobs/{id}', 404, { id: UNKNOWN });
  await expectCall('get', '/berth/films/{id}', 404, { id: UNKNOWN });
  for (const query of ['?state=x', '?band=x', '?limit=-1', '?cursor=x', '?limit=1&limit=2'])
    await expectCall('get', '/berth/jobs', 400, { query });
  const refused = { 'idempotency-key': 'k'.repeat(256), 'cancel-after': 'soon' };
  for (const [name, value] of Object.entries(refused)) {
    const init = chat('refused');
    const headers = { ...(init.headers as Record<string, string>), [name]: value };
    await expectCall('post', CHAT, 400, { init: { ...init, headers } });
  }
  const asText = { headers: { accept: 'text/plain' } };
  await expectCall('get', '/berth/jobs/{id}', 404, { id: UNKNOWN, init: asText });
  for (const path of ['queue', 'metrics', 'healthz', 'readyz', 'openapi.json', 'docs', 'board'])
    await expectCall('get', `/berth/${path}`, 200);
});

test('the page has its files, and nothing else of where they come from', async () => {
  for (const file of ['swagger-ui.css', 'swagger-ui-bundle.js', 'start.js']) {
    const response = await fetch(`${berth.url}/berth/docs/${file}`);
    expect([file, response.status]).toEqual([file, 200]);
    expect(response.headers.get('content-security-policy')).toContain("script-src 'self'");
    await response.arrayBuffer();
  }
  for (const file of ['index.html', 'package.json', '..%2fpackage.json', 'absolute-path.js']) {
    const response = await fetch(`${berth.url}/berth/docs/${file}`);
    expect([file, response.status >= 400]).toEqual([file, true]);
    await response.arrayBuffer();
  }
});
