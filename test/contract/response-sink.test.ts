import { createServer, request } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { protocolOf } from '../../src/gateway/stream-protocol.ts';
import { HttpResponseSink } from '../../src/ingress/response-sink.ts';
import { WaitingSigns } from '../../src/ingress/waiting-signs.ts';
import type { QueuePlace } from '../../src/ingress/published-plan.ts';
import { eventually } from '../support/eventually.ts';

const SSE = { status: 200, headers: ['Content-Type', 'text/event-stream'] };
const JSON_TYPE = ['Content-Type', 'application/json'];

let server: Server;
let sink: HttpResponseSink;
let place: QueuePlace | undefined;
let style: 'off' | 'comments' | 'reasoning';
let hasStarted: boolean;

beforeEach(async () => {
  place = { position: 3, eta: { p50: 120.4, p90: 299.6 } };
  style = 'comments';
  hasStarted = false;
  server = createServer((incoming, response) => {
    const protocol = protocolOf(incoming.url ?? '');
    const signs =
      protocol &&
      new WaitingSigns({
        jobId: 'job-1',
        model: 'm',
        protocol,
        style: { style, afterMs: 60, everyMs: 20 },
        hasStarted: () => hasStarted,
        place: async () => Promise.resolve(place),
      });
    sink = new HttpResponseSink(response, () => ['X-Berth-Job-Id', 'job-1'], signs);
    server.emit('asked');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** What a client has got so far. */
interface Client {
  head: IncomingMessage | undefined;
  text: string;
  end: 'clean' | 'cut' | undefined;
}

async function ask(path: string): Promise<Client> {
  const client: Client = { head: undefined, text: '', end: undefined };
  const outgoing = request({
    port: (server.address() as AddressInfo).port,
    path,
    method: 'POST',
    agent: false,
  });
  const asked = once(server, 'asked');
  outgoing.on('error', () => (client.end = 'cut'));
  outgoing.on('response', (incoming) => {
    client.head = incoming;
    incoming.setEncoding('utf8').on('data', (piece: string) => (client.text += piece));
    incoming.on('end', () => (client.end = 'clean'));
    incoming.on('error', () => (client.end = 'cut'));
  });
  outgoing.end();
  await asked;
  return client;
}
const until = async (client: Client, what: RegExp): Promise<void> => {
  await eventually(() => Promise.resolve(what.test(client.text)), { what: String(what) });
};
const ended = async (client: Client): Promise<Client> => {
  await eventually(() => Promise.resolve(client.end !== undefined), { what: 'an end' });
  return client;
};
const write = async (text: string): Promise<void> => sink.write(Buffer.from(text));
const last = (text: string): unknown =>
  JSON.parse(/data: (.*)\n\n$/.exec(text)?.[1] ?? 'null') as unknown;

describe('a client that waits for a stream', () => {
  test('gets comments with position and ETA, then the stream, in an unbuffered answer', async () => {
    const client = await ask('/v1/chat/completions');
    await until(client, /^(: berth position 3 eta 120-300\n){3}/);
    expect(client.head?.statusCode).toBe(200);
    expect(client.head?.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
      'cache-control': 'no-cache',
      'x-berth-job-id': 'job-1',
    });
    sink.head({ status: 200, headers: [...SSE.headers, 'X-Late', '1'] });
    await write('data: a\n\n');
    sink.end();
    expect((await ended(client)).text).toMatch(/^(: berth [^\n]*\n)+data: a\n\n$/);
  });

  test('of Anthropic gets pings that name the place', async () => {
    const client = await ask('/v1/messages');
    await until(
      client,
      /^: berth position 3 eta 120-300\nevent: ping\ndata: \{"type":"ping"\}\n\n/,
    );
    sink.fail('cancelled', 'the job was cancelled');
    expect(last((await ended(client)).text)).toMatchObject({ type: 'error' });
  });

  test('with the style of reasoning is told a new position as reasoning, else a comment', async () => {
    style = 'reasoning';
    const client = await ask('/v1/chat/completions');
    await until(client, /Queue position: #3, ETA 120-300 s/);
    await until(client, /: berth position 3/);
    place = { position: 5, eta: { p50: 1, p90: 2 } };
    await until(client, /Queue position: #5/);
    const [first] = client.text.split('\n\n');
    expect(JSON.parse(first?.slice(6) ?? '')).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { reasoning_content: 'Queue position: #3, ETA 120-300 s\n' } }],
    });
    expect(client.text.match(/Queue position: #5/g)).toHaveLength(1);
  });

  test('is told that it runs, also before any plan says so', async () => {
    hasStarted = true;
    place = undefined;
    const client = await ask('/v1/responses');
    await until(client, /^: berth running\n/);
    place = { position: undefined, eta: { p50: 3, p90: 5 } };
    await until(client, /: berth running eta 3-5\n/);
    expect(client.text).not.toContain('position');
  });

  test('gets nothing when signs are off, and an early error keeps its status', async () => {
    style = 'off';
    const silent = await ask('/v1/chat/completions');
    const silentSink = sink;
    style = 'comments';
    const waiting = await ask('/v1/chat/completions');
    await until(waiting, /: berth/);
    silentSink.head({ status: 400, headers: JSON_TYPE });
    await silentSink.write(Buffer.from('{}'));
    silentSink.end();
    expect((await ended(silent)).head?.statusCode).toBe(400);
  });

  test('keeps its status free when the head of an error is known but not its body', async () => {
    const client = await ask('/v1/chat/completions');
    const head = { status: 400, headers: JSON_TYPE };
    sink.expect(head);
    const erring = sink;
    const other = await ask('/v1/chat/completions');
    await until(other, /(: berth.*\n){4}/);
    erring.head(head);
    await erring.write(Buffer.from('{"error":{}}'));
    erring.end();
    expect(await ended(client)).toMatchObject({ head: { statusCode: 400 }, text: '{"error":{}}' });
  });
});

describe('signs of life in a begun stream', () => {
  test('come at event borders only, and bytes of an unfinished event wait for its end', async () => {
    const client = await ask('/v1/chat/completions');
    sink.head(SSE);
    await write('data: one\n\ndata: tw');
    await until(client, /^data: one\n\n(: berth.*\n)+$/);
    await write('o\n\n');
    await until(client, /^data: one\n\n(: berth.*\n)+data: two\n\n(: berth.*\n)+$/);
    sink.end();
    expect((await ended(client)).end).toBe('clean');
  });

  test('never come inside an event too long to be held', async () => {
    const client = await ask('/v1/chat/completions');
    const long = 'x'.repeat(100_000);
    sink.head(SSE);
    await write(`data: ${long}`);
    const other = sink;
    const second = await ask('/v1/chat/completions');
    await until(second, /(: berth.*\n){3}/);
    expect(client.text).toBe(`data: ${long}`);
    await other.write(Buffer.from('y\n\n'));
    await until(client, /xy\n\n: berth/);
  });

  test("leave upstream's own headers and comments as they are", async () => {
    const client = await ask('/v1/chat/completions');
    sink.head({ status: 200, headers: [...SSE.headers, 'Cache-Control', 'no-store'] });
    await write(': hb\n');
    await until(client, /^: hb\n/);
    expect(client.head?.headers['cache-control']).toBe('no-store');
    expect(client.head?.headers['x-accel-buffering']).toBe('no');
  });
});

describe('a failure after the client was promised a stream', () => {
  test.each([
    [
      '/v1/chat/completions',
      /\n\n?data: [^\n]*\n\n$/,
      { src: 'berth', error: { type: 'server_error', code: 'lease_lapsed' } },
    ],
    [
      '/v1/responses',
      /event: error\ndata: [^\n]*\n\n$/,
      { type: 'error', sequence_number: 1, error: { code: 'lease_lapsed' } },
    ],
    [
      '/v1/messages',
      /event: error\ndata: [^\n]*\n\n$/,
      { type: 'error', error: { type: 'timeout_error', message: 'late' } },
    ],
  ])('is an error event of its protocol: %s', async (path, form, shape) => {
    const client = await ask(path);
    sink.head(SSE);
    await write('data: {"a":1}\n\ndata: {"brok');
    sink.fail('lease_lapsed', 'late');
    const { text, end } = await ended(client);
    expect([end, text.includes('[DONE]'), text.includes('brok')]).toEqual(['clean', false, false]);
    expect(text).toMatch(form);
    expect(last(text)).toMatchObject(shape);
    expect(sink.failure).toBe('lease_lapsed');
  });

  test.each([
    ['an object', { error: { message: 'too long', type: 'x', code: 400 } }, 'too long', 400],
    ['a text', { src: 'llama-swap', error: 'too long' }, 'too long', 422],
  ])('of the model server, its error %s, becomes an event', async (_name, body, message, code) => {
    const client = await ask('/v1/chat/completions');
    await until(client, /: berth/);
    sink.head({ status: 422, headers: JSON_TYPE });
    await write(JSON.stringify(body));
    sink.end();
    expect(last((await ended(client)).text)).toMatchObject({ error: { message, code } });
  });

  test('of a proxy in between, in HTML, is an event without its page', async () => {
    const client = await ask('/v1/messages');
    await until(client, /: berth/);
    sink.head({ status: 502, headers: ['Content-Type', 'text/html'] });
    await write('<html>nginx</html>');
    sink.fail('model_server_unreachable', 'x');
    const { text } = await ended(client);
    expect(text).not.toContain('nginx');
    expect(last(text)).toMatchObject({ error: { type: 'api_error' } });
  });

  test('that the stream told itself is not told again', async () => {
    const client = await ask('/v1/chat/completions');
    sink.head(SSE);
    const told = 'data: {"error":{"message":"too long"}}\n\n';
    await write(told);
    sink.fail('model_server_invalid', 'x');
    expect(await ended(client)).toMatchObject({ text: told, end: 'clean' });
  });
});

describe('a failure of an answer in one piece', () => {
  test('cuts the connection, so that it never looks complete', async () => {
    const client = await ask('/v1/images/generations');
    sink.head({ status: 200, headers: JSON_TYPE });
    await write('{"half');
    await until(client, /half/);
    sink.fail('model_server_truncated', 'x');
    expect((await ended(client)).end).toBe('cut');
  });

  test('whose client has every byte is none to it', async () => {
    const client = await ask('/v1/images/generations');
    sink.head({ status: 502, headers: [...JSON_TYPE, 'Content-Length', '2'] });
    await write('{}');
    sink.fail('model_server_unreachable', 'x');
    expect(await ended(client)).toMatchObject({ head: { statusCode: 502 }, end: 'clean' });
  });
});
