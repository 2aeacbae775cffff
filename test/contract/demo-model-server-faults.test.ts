import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  cleanEarlyEnd,
  drip,
  emptyAnswer,
  hangUp,
  headThenSilence,
  htmlBadGateway,
  modelFailure,
  notReady,
  oldStyleError,
  ScriptedModelServer,
  silence,
  startDemoModelServer,
  stuckAfter,
  tooManyRequests,
  transientFailure,
  truncated,
  type RequestRecord,
} from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startDemoModelServer();
});

afterEach(() => server.close());

function chat(fields: object = {}): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ model: 'demo-chat', messages: [], max_tokens: 5, ...fields }),
  });
}

const stream = { stream: true };

/** What could be read of the body, and whether it ended as it should. */
async function drain(response: Response): Promise<{ text: string; broken: boolean }> {
  let text = '';
  try {
    for await (const piece of response.body ?? [])
      text += Buffer.from(piece as Uint8Array).toString();
    return { text, broken: false };
  } catch {
    return { text, broken: true };
  }
}

function onlyRequest(): RequestRecord {
  expect(server.record).toHaveLength(1);
  return server.record[0]!;
}

describe('faults', () => {
  test.each([
    ['429', tooManyRequests('7'), 429, 'concurrency_limit'],
    ['503', notReady(), 503, 'process is not ready'],
    ['500 of llama-swap', transientFailure(), 500, '"src":"llama-swap"'],
    ['500 of the model', modelFailure(), 500, '{"error":{"code":500'],
    ['old error', oldStyleError(500, 'gone'), 500, '"error":"gone"'],
    ['502 page', htmlBadGateway(), 502, '<html>'],
    ['empty 200', emptyAnswer(), 200, ''],
  ])('%s is answered once and takes no GPU', async (_name, fault, status, text) => {
    server.fault(fault);
    const response = await chat();
    expect(response.status).toBe(status);
    expect(await response.text()).toContain(text);
    expect((await chat()).status).toBe(200);
    expect([server.attempts().length, server.generations().length]).toEqual([2, 1]);
  });

  test('a truncated stream breaks after the events that were sent', async () => {
    server.fault(truncated(3));
    const { text, broken } = await drain(await chat(stream));
    expect([text.match(/data: /g)?.length, broken]).toEqual([3, true]);
    expect(onlyRequest().aborted).toBe(false);
  });

  test('a truncated answer with a length breaks too', async () => {
    server.fault({ kind: 'cut', afterBytes: 10, how: 'reset' });
    expect(await drain(await chat())).toMatchObject({ broken: true });
  });

  test('an early end looks tidy, with and without a stream', async () => {
    server.fault(cleanEarlyEnd(3));
    const cut = await drain(await chat(stream));
    expect(cut).toMatchObject({ broken: false, text: expect.not.stringContaining('[DONE]') });
    server.fault({ kind: 'cut', afterBytes: 10, how: 'end' });
    expect(await drain(await chat())).toEqual({ broken: false, text: '{"id":"cha' });
    server.fault(cleanEarlyEnd(0));
    expect(await drain(await chat(stream))).toEqual({ broken: false, text: '' });
  });

  test.each([
    ['no byte at all', silence(), ''],
    ['a head alone', headThenSilence(), ''],
    ['a head and a piece', headThenSilence('data: 1\n\n'), 'data: 1\n\n'],
    ['drips', drip(5, 3), ': ping\n\n: ping\n\n: ping\n\n'],
    ['some events', stuckAfter(1), 'data: '],
  ])('%s, then silence until the client leaves', async (_name, fault, text) => {
    server.fault(fault);
    let seen = '';
    const socket = connect(server.port, '127.0.0.1');
    socket.on('data', (piece) => (seen += piece.toString()));
    const body = '{"model":"demo-chat","stream":true}';
    const head = `Host: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${head}\r\n\r\n${body}`);
    const plain = (): string => seen.replace(/^[0-9a-f]+\r\n|\r\n(?:[0-9a-f]+\r\n)?/gm, '');
    await eventually(() => server.generations().length === 1 && plain().includes(text), {
      what: `"${text}"`,
    });
    expect(onlyRequest().endedAtMs).toBeNull();
    socket.destroy();
    await eventually(() => onlyRequest().aborted, { what: 'the client to be missed' });
    expect(seen).not.toContain('[DONE]');
  });

  test('a connection is closed before any byte, or refused until the server opens again', async () => {
    server.fault(hangUp());
    await expect(chat()).rejects.toMatchObject({ cause: { code: 'UND_ERR_SOCKET' } });
    await server.refuseConnections();
    await expect(chat()).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
    const url = server.url;
    await server.open();
    expect(server.url).toBe(url);
    expect((await chat()).status).toBe(200);
  });

  test('bytes of any kind can stand in for an answer', async () => {
    const bytes = 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab';
    server.fault({ kind: 'raw', bytes, close: true });
    expect(await drain(await chat())).toEqual({ text: 'ab', broken: true });
  });

  test('the usual answer can come a byte at a time', async () => {
    const whole = await (await chat(stream)).text();
    server.fault({ kind: 'slices', bytes: 1 });
    expect(await (await chat(stream)).text()).toBe(whole);
  });

  test('faults are used up in order, by those they are for, and can be taken back', async () => {
    const onlyLarge = (request: RequestRecord): boolean => request.model === 'demo-chat-large';
    server.fault(modelFailure(501));
    server.fault(modelFailure(507), { where: onlyLarge, times: 2 });
    const takeBack = server.fault(modelFailure(503), { where: onlyLarge, times: Infinity });
    const status = async (model: string): Promise<number> => (await chat({ model })).status;
    expect(await status('demo-chat')).toBe(501);
    expect(await status('demo-chat')).toBe(200);
    const seen = [];
    for (let asked = 0; asked < 4; asked += 1) seen.push(await status('demo-chat-large'));
    expect(seen).toEqual([507, 507, 503, 503]);
    takeBack();
    expect(await status('demo-chat-large')).toBe(200);
    const running = (request: RequestRecord): boolean => request.target === '/running';
    server.fault(modelFailure(500), { where: running });
    expect((await fetch(`${server.url}/running`)).status).toBe(500);
  });

  test('a held request runs on its loaded model until it is released, with a fault if asked', async () => {
    const gate = server.hold();
    const held = chat();
    const request = await gate.arrived;
    expect(request).toMatchObject({ model: 'demo-chat-small', endedAtMs: null });
    expect(server.residentModel).toBe('demo-chat-small');
    gate.release(modelFailure(500, 'later'));
    expect(await (await held).json()).toMatchObject({ error: { message: 'later' } });
    expect(server.generations()).toHaveLength(1);
  });
});
