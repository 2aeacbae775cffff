import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { WebSocket } from 'undici';
import { HttpModelCatalogue } from '../../src/adapters/upstream/http-model-catalogue.ts';
import { HttpModelServerSockets } from '../../src/adapters/upstream/http-model-server-sockets.ts';
import { HttpModelServer } from '../../src/adapters/upstream/http-model-server.ts';
import { Gatekeeper } from '../../src/ingress/gatekeeper.ts';
import { KeyRing } from '../../src/ingress/key-ring.ts';
import type { AccessKey } from '../../src/ingress/key-ring.ts';
import { UpgradeRoute } from '../../src/ingress/routes/upgrade.ts';
import { UpstreamHeaders } from '../../src/ingress/upstream-headers.ts';
import { serveUpgrades } from '../../src/ingress/upgrades.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat } from '../support/requests.ts';

const KEY: AccessKey = {
  name: 'k1',
  sha256: createHash('sha256').update('key-one').digest('hex'),
  member: 'k1',
  tier: 'free',
  defaultPriority: 0,
  maxPriority: 100,
  mayAssert: [],
  isAdmin: false,
  waitingPerMember: null,
  bytesPerMember: null,
};

let demo: ScriptedModelServer;
let server: Server;
let route: UpgradeRoute;
let keys: KeyRing;
let modelServer: HttpModelServer;
/** What was served as a plain request. */
let plain: string[];
let sockets: WebSocket[];

beforeEach(async () => {
  demo = await startDemoModelServer();
  modelServer = new HttpModelServer({ url: demo.url });
  const catalogue = new HttpModelCatalogue(modelServer, []);
  keys = new KeyRing([]);
  route = new UpgradeRoute({
    modelServer: new HttpModelServerSockets(demo.url),
    catalogue,
    needsNoGpu: (model) => catalogue.isPeer(model),
    headerRules: new UpstreamHeaders('model-server-key', () => !keys.isEmpty),
    most: 2,
  });
  plain = [];
  sockets = [];
  server = createServer((request, response) => {
    void text(request).then((body) => {
      plain.push(`${request.method ?? ''} ${request.url ?? ''} ${body}`);
      response.end(JSON.stringify(request.headers));
    });
  });
  const identity = {
    tiers: ['free'],
    caps: { waitingPerMember: 1, bytesPerMember: 1 },
    onIgnored: () => undefined,
  };
  serveUpgrades(server, new Gatekeeper({ keys, identity, allowOpen: false }), route);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

afterEach(async () => {
  for (const socket of sockets) socket.close();
  route.close();
  server.closeAllConnections();
  server.close();
  await demo.close();
  await modelServer.close();
});

const port = (): number => (server.address() as AddressInfo).port;
const load = async (model: string): Promise<void> => {
  await (await fetch(`${demo.url}/v1/chat/completions`, chat('load', { model }))).text();
};

async function open(path: string, headers: Record<string, string> = {}): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port()}${path}`, { headers });
  sockets.push(socket);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('it did not open'));
  });
  return socket;
}

async function echoed(socket: WebSocket, words: string): Promise<string> {
  const heard = new Promise<string>((resolve) => {
    socket.onmessage = ({ data }) => {
      if (data === words) resolve(words);
    };
  });
  socket.send(words);
  return heard;
}

const handshake = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

/** Asks for a socket and returns the answer that refused it. */
async function refusal(
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: { src: string; error: { code: string } } }> {
  const asked = httpRequest({ port: port(), path, headers: { ...handshake, ...headers } });
  asked.end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: JSON.parse(await text(response)) as never };
}

describe('a socket of a model that is loaded', () => {
  beforeEach(async () => load('demo-chat-small'));

  test('passes messages both ways, also large ones, whatever else the model does', async () => {
    const gate = demo.hold();
    const running = fetch(`${demo.url}/v1/chat/completions`, chat('runs'));
    await gate.arrived;
    const socket = await open('/upstream/demo-chat-small/any/path?x=1');
    expect(await echoed(socket, 'hello')).toBe('hello');
    const large = 'x'.repeat(300_000);
    expect(await echoed(socket, large)).toBe(large);
    expect(demo.record.at(-1)).toMatchObject({ target: '/upstream/demo-chat-small/any/path?x=1' });
    gate.release();
    await (await running).text();
  });

  test('closes on either side when the other one closes, cleanly or not', async () => {
    const first = await open('/upstream/demo-chat/ws');
    const closed = new Promise((resolve) => (first.onclose = resolve));
    first.close();
    await closed;
    await eventually(() => demo.record.at(-1)?.endedAtMs !== null, { what: 'its end upstream' });
    const rude = connect(port(), '127.0.0.1');
    const lines = Object.entries(handshake).map(([name, value]) => `${name}: ${value}\r\n`);
    rude.write(`GET /upstream/demo-chat/ws HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}\r\n`);
    await once(rude, 'data');
    rude.resetAndDestroy();
    await eventually(() => demo.record.at(-1)?.endedAtMs !== null, { what: 'the cut upstream' });
    const last = await open('/upstream/demo-chat/ws');
    const lost = new Promise((resolve) => (last.onclose = resolve));
    await demo.refuseConnections();
    await lost;
    await eventually(() => route.heldModels.size === 0, { what: 'all to be forgotten' });
  });

  test('passes on the end of one direction and the rest of the other', async () => {
    const half = connect({ port: port(), host: '127.0.0.1', allowHalfOpen: true });
    const lines = Object.entries(handshake).map(([name, value]) => `${name}: ${value}\r\n`);
    half.write(`GET /upstream/demo-chat/ws HTTP/1.1\r\nHost: 127.0.0.1\r\n${lines.join('')}\r\n`);
    // A masked text frame of two letters, then the end of what this side has to say.
    half.end(Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
    const seen = await text(half);
    expect(seen).toMatch(/^HTTP\/1\.1 101 /);
    expect(JSON.stringify(seen)).toMatch(/\\u0002hi"$/);
  });

  test('is one of a limited number', async () => {
    const [first] = [await open('/upstream/demo-chat/a'), await open('/upstream/demo-chat/b')];
    expect(await refusal('/upstream/demo-chat/c')).toMatchObject({
      status: 503,
      body: { src: 'berth', error: { code: 'queue_full' } },
    });
    first.close();
    await eventually(async () => open('/upstream/demo-chat/c'), { what: 'room' });
  });

  test('goes away when told to give way, and at the end', async () => {
    const socket = await open('/upstream/demo-chat/ws');
    expect([...route.heldModels]).toEqual(['demo-chat-small']);
    const closed = new Promise((resolve) => (socket.onclose = resolve));
    expect([route.giveWay('demo-image'), route.giveWay('demo-chat-small')]).toEqual([0, 1]);
    await closed;
    const other = await open('/upstream/demo-chat/ws');
    const ended = new Promise((resolve) => (other.onclose = resolve));
    route.close();
    await ended;
    expect((await refusal('/upstream/demo-chat/ws')).body.error.code).toBe('shutting_down');
  });

  test('needs a key where keys are configured, and that key stays here', async () => {
    keys.replace([KEY]);
    expect(await refusalOrPlain('/upstream/demo-chat/ws')).toBe('plain');
    const headers = { Authorization: 'Bearer key-one' };
    expect(await refusalOrPlain('/upstream/demo-chat/slots', headers)).toBe('plain');
    const foreign = { ...headers, Origin: 'http://elsewhere.test' };
    expect(await refusal('/upstream/demo-chat/ws', foreign)).toMatchObject({ status: 403 });
    const socket = await open('/upstream/demo-chat/ws', headers);
    expect(await echoed(socket, 'x')).toBe('x');
    expect(demo.record.at(-1)?.headers.authorization).toBe('Bearer model-server-key');
    expect(JSON.stringify(demo.record)).not.toContain('key-one');
  });
});

/** Whether a socket was refused here, or its request left to the plain path, which refuses it. */
async function refusalOrPlain(path: string, headers: Record<string, string> = {}): Promise<string> {
  const before = plain.length;
  await refusal(path, headers).catch(() => undefined);
  return plain.length > before ? 'plain' : 'refused';
}

describe('a socket of a model that is not loaded', () => {
  test('loads nothing', async () => {
    expect(await refusal('/upstream/demo-chat-small/ws')).toMatchObject({
      status: 503,
      body: { src: 'berth', error: { code: 'model_unavailable' } },
    });
    expect(demo.loads).toBe(0);
    expect(demo.record.some(({ target }) => target.startsWith('/upstream'))).toBe(false);
  });

  test('below /comfyui is refused by llama-swap itself, and opens once it is loaded', async () => {
    expect(await refusal('/comfyui/ws')).toMatchObject({
      status: 409,
      body: { src: 'llama-swap', error: { code: 'conflict' } },
    });
    await (await fetch(`${demo.url}/comfyui/`)).text();
    const socket = await open('/comfyui/ws?clientId=1');
    expect(await echoed(socket, 'x')).toBe('x');
    expect([...route.heldModels]).toEqual([]);
  });

  test('of an unknown model is left to llama-swap', async () => {
    expect(await refusal('/upstream/nobody/ws')).toMatchObject({
      status: 404,
      body: { src: 'llama-swap' },
    });
  });

  test("opens for a peer's model", async () => {
    const socket = await open('/upstream/demo-peer/remote-chat/ws');
    expect(await echoed(socket, 'x')).toBe('x');
    expect(demo.loads).toBe(0);
  });
});

describe('an upgrade that is no socket of a model', () => {
  test.each([
    ['h2c with a body', 'POST /v1/x', 'h2c', 'Content-Length: 3\r\n', 'abc'],
    ['a WebSocket elsewhere', 'GET /v1/realtime', 'websocket', '', ''],
    [
      'a WebSocket with a body',
      'GET /upstream/demo-chat/ws',
      'websocket',
      'Content-Length: 2\r\n',
      'ab',
    ],
  ])('%s is a plain request, and so is the next one', async (_what, line, protocol, more, body) => {
    const client = connect(port(), '127.0.0.1');
    const head = `Host: 127.0.0.1\r\nConnection: keep-alive, Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA\r\n`;
    client.write(`${line} HTTP/1.1\r\n${head}Upgrade: ${protocol}\r\n${more}\r\n${body}`);
    client.write('GET /next HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n');
    const answers = await text(client);
    expect(plain.toSorted()).toEqual(['GET /next ', `${line} ${body}`].toSorted());
    expect(answers).not.toMatch(/upgrade|http2-settings/i);
  });
});

test('a server that does not answer HTTP, or not at all, is told apart', async () => {
  const broken: Duplex[] = [];
  const odd = createServer().listen(0, '127.0.0.1');
  await once(odd, 'listening');
  odd.on('connection', (socket) => {
    broken.push(socket);
    socket.write('hello\r\n');
  });
  const upstream = new HttpModelServerSockets(
    `http://127.0.0.1:${(odd.address() as AddressInfo).port}`,
  );
  const asked = {
    method: 'GET',
    target: '/x',
    headers: ['Connection', 'Upgrade', 'Upgrade', 'websocket'],
  };
  await expect(upstream.upgrade(asked, new AbortController().signal)).rejects.toMatchObject({
    kind: 'invalid',
  });
  for (const socket of broken) socket.destroy();
  await new Promise((resolve) => odd.close(resolve));
  await expect(upstream.upgrade(asked, new AbortController().signal)).rejects.toMatchObject({
    kind: 'unreachable',
  });
});
