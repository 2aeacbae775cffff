import { createServer } from 'node:http';
import type { Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { probeWith, watchHalfClose } from '../../src/ingress/half-close.ts';
import { eventually } from '../support/eventually.ts';

let server: Server;
let response: ServerResponse | undefined;

beforeEach(async () => {
  response = undefined;
  server = createServer((request, answer) => {
    watchHalfClose(request, answer);
    response = answer;
  });
  Object.assign(server, { httpAllowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function ask(version: string): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  socket.on('error', () => undefined);
  socket.write(`GET / HTTP/${version}\r\nHost: x\r\n\r\n`);
  await eventually(() => response !== undefined, { what: 'the request' });
  return { socket, text: () => text };
}
const closed = async (): Promise<number> => {
  const startedAt = performance.now();
  await eventually(() => response?.destroyed === true, { what: 'the response to close' });
  return performance.now() - startedAt;
};

test.each(['1.1', '1.0'])(
  'a client that is gone is found out within a second, HTTP/%s',
  async (version) => {
    const { socket } = await ask(version);
    socket.destroy();
    expect(await closed()).toBeLessThan(1000);
    expect(response?.writableFinished).toBe(false);
  },
);

test('one that reads on is asked with interim answers only, and gets its answer', async () => {
  const { socket, text } = await ask('1.1');
  socket.end();
  await eventually(() => text().includes('102 Processing'), { what: 'an interim answer' });
  response?.end('late');
  await once(socket, 'close');
  expect(text()).toMatch(/^(HTTP\/1\.1 102 Processing\r\n\r\n)+HTTP\/1\.1 200 OK\r\n/);
  expect(text()).toMatch(/late$/);
});

test('one in the middle of a stream is asked in a way of its stream', async () => {
  const { socket, text } = await ask('1.1');
  response?.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response?.write('data: a\n\n');
  if (response !== undefined) probeWith(response, () => response?.write(':\n'));
  socket.end();
  await eventually(() => text().includes('\n:\n'), { what: 'a comment' });
  socket.destroy();
  response?.write('data: b\n\n');
  expect(await closed()).toBeLessThan(1000);
});
