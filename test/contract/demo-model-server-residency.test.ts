import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

let server: ScriptedModelServer;

beforeEach(async () => {
  server = await startDemoModelServer();
});

afterEach(() => server.close());

interface Ask {
  readonly model?: string;
  readonly fields?: object;
  readonly signal?: AbortSignal;
}

function chat({ model = 'demo-chat', fields = {}, signal }: Ask = {}): Promise<Response> {
  return fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ model, messages: [], max_tokens: 5, ...fields }),
    ...(signal === undefined ? {} : { signal }),
  });
}

describe('one resident model', () => {
  test('another model waits for what runs, then loads; waiters for it start together', async () => {
    const gate = server.hold();
    const small = chat();
    await gate.arrived;
    const order: string[] = [];
    const large = [1, 2].map(async () => {
      await chat({ model: 'demo-chat-large' });
      order.push('large');
    });
    await eventually(() => server.attempts().length === 3, { what: 'three requests to arrive' });
    expect(server.residentModel).toBe('demo-chat-small');
    order.push('small');
    gate.release();
    await Promise.all([small, ...large]);
    expect(order).toEqual(['small', 'large', 'large']);
    expect([server.loads, server.swaps]).toEqual([2, 1]);
    expect(server.residentModel).toBe('demo-chat-large');
  });

  test('requests for the resident model overlap, and that is recorded', async () => {
    const gate = server.hold((request) => request.gpu, 2);
    const both = [chat(), chat()];
    await eventually(() => server.generations().length === 2, { what: 'both to run' });
    gate.release();
    await Promise.all(both);
    await chat();
    expect([server.overlaps, server.maxConcurrent]).toEqual([2, 2]);
    expect(server.generations().map((request) => request.overlapped)).toEqual([true, true, false]);
  });

  test('one after the other does not overlap, however closely they follow', async () => {
    for (let round = 0; round < 100; round += 1)
      await (await chat({ fields: { stream: round % 2 === 1 } })).text();
    expect([server.overlaps, server.maxConcurrent]).toEqual([0, 1]);
  });

  test('an unload cuts what runs and refuses what waits', async () => {
    const gate = server.hold();
    const running = chat();
    await gate.arrived;
    const waiting = chat({ model: 'demo-chat-large' });
    await eventually(() => server.attempts().length === 2, { what: 'the waiting request' });
    expect(await (await fetch(`${server.url}/unload`)).text()).toBe('OK');
    const [cut, refused] = await Promise.all([running, waiting]);
    expect([cut.status, await cut.text()]).toEqual([502, '']);
    expect(refused.status).toBe(500);
    expect(await refused.json()).toMatchObject({
      src: 'llama-swap',
      error: { message: 'unspecific error: group: model unloaded' },
    });
    expect(server.residentModel).toBeNull();
  });

  test('an unload of one model leaves another alone', async () => {
    await chat();
    const unload = (model: string): Promise<Response> =>
      fetch(`${server.url}/api/models/unload/${model}`, { method: 'POST' });
    expect((await unload('demo/org-chat')).status).toBe(200);
    expect(server.residentModel).toBe('demo-chat-small');
    expect(await (await unload('demo-chat')).text()).toBe('OK');
    expect(server.residentModel).toBeNull();
  });

  test('a look at the ready model takes no GPU, one that loads it does', async () => {
    const look = `${server.url}/upstream/demo-chat/health`;
    await fetch(look);
    await fetch(look);
    expect(server.record.map((request) => request.gpu)).toEqual([true, false]);
  });
});

describe('a client that leaves', () => {
  test('stops its generation at once, in the middle of a stream', async () => {
    await server.close();
    server = await startDemoModelServer({ tokensPerSecond: 20 });
    const client = new AbortController();
    const response = await chat({
      fields: { stream: true, max_tokens: 1000 },
      signal: client.signal,
    });
    await response.body?.getReader().read();
    client.abort();
    await eventually(() => server.record[0]!.endedAtMs !== null, {
      what: 'the end',
      timeoutMs: 1000,
    });
    expect(server.record[0]).toMatchObject({ aborted: true, status: 200 });
    await chat();
    expect(server.overlaps).toBe(0);
  });

  test('leaves the queue while another model runs, and nothing is loaded for it', async () => {
    const gate = server.hold();
    const running = chat();
    await gate.arrived;
    const client = new AbortController();
    const waiting = chat({ model: 'demo-chat-large', signal: client.signal });
    await eventually(() => server.attempts().length === 2, { what: 'the waiting request' });
    client.abort();
    await expect(waiting).rejects.toThrow(/abort/);
    await eventually(() => server.record[1]?.aborted === true, { what: 'the client to be missed' });
    gate.release();
    expect((await running).status).toBe(200);
    expect(server.loads).toBe(1);
  });

  test('is missed in the middle of its upload', async () => {
    const socket = connect(server.port, '127.0.0.1');
    socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"mo');
    await eventually(() => server.record.length === 1, { what: 'the head to arrive' });
    socket.resetAndDestroy();
    await eventually(() => server.record[0]!.aborted, { what: 'the client to be missed' });
    expect(server.record[0]).toMatchObject({ bodySha256: null, gpu: false });
  });

  test('changes nothing for a model that does not listen', async () => {
    server.fault({ kind: 'deaf' });
    const client = new AbortController();
    const fields = { stream: true, max_tokens: 500 };
    const response = await chat({ fields, signal: client.signal });
    await response.body?.getReader().read();
    client.abort();
    await chat();
    await eventually(() => server.record[0]?.endedAtMs ?? null, {
      what: 'the deaf generation to end',
    });
    expect(server.record[0]?.aborted).toBe(true);
    expect(server.overlaps).toBe(2);
  });
});
