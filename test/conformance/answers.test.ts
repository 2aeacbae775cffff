import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { peakBytes } from '../support/peak-memory.ts';
import { RawClient, readChunks, valuesOf } from '../support/raw-client.ts';
import type { RawAnswer } from '../support/raw-client.ts';
import { answerOf, RawUpstream } from '../support/raw-upstream.ts';

let upstream: RawUpstream;
let berth: BerthSystem;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  berth = await BerthSystem.start({ modelServerUrl: upstream.url });
});
beforeEach(() => upstream.reset());
afterAll(async () => {
  await berth.stop();
  await upstream.close();
});

const BODY = '{"model":"m","stream":true}';
const POST = (body = BODY, more = ''): string =>
  `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${more}Content-Length: ${body.length}\r\n\r\n${body}`;
const SSE =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = (bytes: string | Buffer): Buffer => {
  const data = Buffer.from(bytes);
  return Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from('\r\n')]);
};
const event = (text: string): string =>
  `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`;
const DONE = 'data: [DONE]\n\n';
const LAST = '0\r\n\r\n';

async function one(bytes: string): Promise<RawAnswer> {
  const client = await RawClient.to(berth.url);
  await client.send(bytes);
  const answer = await client.answer(20_000);
  client.leave();
  return answer;
}

/** Streams these pieces as chunks of an event stream, each written by itself, and ends well. */
function streams(...pieces: (string | Buffer)[]): void {
  upstream.script = async (socket) => {
    socket.write(SSE);
    for (const piece of pieces) await written(socket, chunk(piece));
    socket.write(LAST);
  };
}

async function written(socket: Socket, bytes: Buffer): Promise<void> {
  await new Promise<void>((resolve) => void socket.write(bytes, () => resolve()));
}

describe('streams of events', () => {
  const usage = 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n';
  const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

  test.each<[what: string, events: string[]]>([
    ['case 1: the end mark comes through', [event('a'), DONE]],
    ['case 2: usage after the finish, in its order', [event('a'), finish, usage, DONE]],
    ['case 3: usage that nobody asked for', [event('a'), usage, DONE]],
    ['case 4: a comment stays a comment', [': PROCESSING\n\n', event('a'), DONE]],
    ['case 10: an error line of its own form', ['error: {"code":400,"message":"no"}\n\n', DONE]],
    ['case 11: an error in the data', ['data: {"error":{"code":400,"message":"too long"}}\n\n']],
  ])('%s', async (_what, events) => {
    streams(...events);
    const answer = await one(POST());
    expect([answer.status, answer.body]).toEqual([200, events.join('')]);
  });

  test('case 6: a heartbeat reaches the client before anything else is sent', async () => {
    const client = await RawClient.to(berth.url);
    let upstreamSocket: Socket | undefined;
    upstream.script = (socket) => {
      upstreamSocket = socket;
      socket.write(SSE);
      socket.write(chunk(': hb\n\n'));
    };
    await client.send(POST());
    await client.until((text) => text.includes('\r\n: hb\n\n'));
    for (const text of ['x', 'y']) {
      const sentAt = performance.now();
      upstreamSocket?.write(chunk(event(text)));
      await client.until((got) => got.includes(event(text)));
      expect(performance.now() - sentAt).toBeLessThan(500);
    }
    upstreamSocket?.write(Buffer.concat([chunk(DONE), Buffer.from(LAST)]));
    expect((await client.answer()).body).toBe(`: hb\n\n${event('x')}${event('y')}${DONE}`);
    client.leave();
  });

  test('case 7: characters cut anywhere by chunk borders stay whole', async () => {
    const bytes = Buffer.from(`${event('北🌍')}${DONE}`);
    streams(...Array.from(bytes, (byte) => Buffer.from([byte])));
    const answer = await one(POST());
    expect(Buffer.from(answer.body, 'latin1')).toEqual(bytes);
  });

  test.each(['reset', 'end'])(
    'case 12: a stream that breaks off (%s) never ends as if it were whole',
    async (how) => {
      upstream.script = (socket) => {
        socket.write(Buffer.concat([Buffer.from(SSE), chunk(event('a'))]), () =>
          how === 'reset' ? socket.resetAndDestroy() : socket.end(),
        );
      };
      const client = await RawClient.to(berth.url);
      await client.send(POST(BODY, 'Connection: close\r\n'));
      const got = await client.closed(20_000);
      expect(got).toContain(event('a'));
      expect(got.endsWith(LAST) && !got.includes('"src":"berth"')).toBe(false);
      expect(got).not.toContain('[DONE]');
    },
  );

  test('case 15, row 16: buffering is turned off once, and what the model server says goes first', async () => {
    streams(event('a'), DONE);
    const plain = await one(POST());
    expect(valuesOf(plain, 'x-accel-buffering')).toEqual(['no']);
    expect(valuesOf(plain, 'cache-control')).toEqual(['no-cache']);
    upstream.answers(
      answerOf(
        200,
        'text/event-stream',
        DONE,
        'X-Accel-Buffering: yes\r\nCache-Control: no-store\r\n',
      ),
    );
    const told = await one(POST());
    expect(valuesOf(told, 'x-accel-buffering')).toEqual(['yes']);
    expect(valuesOf(told, 'cache-control')).toEqual(['no-store']);
  });

  test('case 16: one event of 12 MB passes, and memory stays bounded', async () => {
    const big = `data: {"choices":[{"delta":{"content":"${'A'.repeat(12 * 1024 * 1024)}"}}]}\n\n`;
    const pid = Number(berth.processes.ingress?.child.pid);
    const peak = (): number => peakBytes(pid);
    const before = peak();
    streams(big, DONE);
    const client = await RawClient.to(berth.url);
    await client.send(POST(BODY, 'Connection: close\r\n'));
    const got = await client.closed(20_000);
    const hash = (text: string): string =>
      createHash('sha256').update(text, 'latin1').digest('hex');
    expect(hash(readChunks(got, got.indexOf('\r\n\r\n') + 4)?.body ?? '')).toBe(hash(big + DONE));
    expect(peak() - before).toBeLessThan(64 * 1024 * 1024);
  }, 40_000);
});

describe('answers in one piece', () => {
  test('row 12: status, end-to-end headers and body come as they were, twice sent ones twice', async () => {
    const body = Buffer.concat([gzipSync('{"a":1}'), Buffer.from([0, 255, 13, 10])]).toString(
      'latin1',
    );
    const headers = [
      'content-ENCODING: gzip',
      'Content-Type: audio/x-odd; q="\xe9"',
      'Set-Cookie: a=1',
      'Date: Mon, 01 Jan 2001 00:00:00 GMT',
      'Set-Cookie: b=2',
      'Vary: Origin',
      'X-Empty: ',
      `Content-Length: ${body.length}`,
    ];
    upstream.answers(
      `HTTP/1.1 207 Odd\r\n${headers.join('\r\n')}\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n${body}`,
    );
    const answer = await one(POST('{"model":"m"}'));
    expect(answer.status).toBe(207);
    expect(answer.body).toBe(body);
    const own = /^(?:X-Berth-|Server-Timing|Connection|Keep-Alive)/i;
    expect(answer.lines.filter((line) => !own.test(line))).toEqual(headers);
  });

  test('row 12: what the client sends about itself arrives, what belongs to its connection does not', async () => {
    const sent = [
      'authorization: Bearer k',
      'X-API-Key: k',
      'Accept: text/plain',
      'X-Session-ID: s',
      'x-litellm-session-id: l',
      'User-Agent: odd/1',
    ];
    await one(
      POST(
        '{"model":"m"}',
        `${sent.join('\r\n')}\r\nTE: trailers\r\nConnection: X-Mine\r\nX-Mine: 1\r\n`,
      ),
    );
    await one(
      `GET /ui/x HTTP/1.1\r\nHost: localhost\r\n${sent.join('\r\n')}\r\nTE: trailers\r\nConnection: X-Mine\r\nX-Mine: 1\r\n\r\n`,
    );
    expect(upstream.requests).toHaveLength(2);
    for (const { headers } of upstream.requests) {
      expect(headers.filter((line) => sent.includes(line))).toEqual(sent);
      expect(headers.join('\n')).not.toMatch(/^(?:x-mine|te):/im);
      expect(headers.filter((line) => /^x-forwarded-for:/i.test(line))).toEqual([
        'X-Forwarded-For: 127.0.0.1',
      ]);
    }
  });

  test('case 17: a body that came in chunks goes on with its length', async () => {
    await one(
      'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"mod\r\n8;x=y\r\nel":"m"}\r\n0\r\n\r\n',
    );
    const [request] = upstream.requests;
    expect(request?.body.toString()).toBe('{"model":"m"}');
    expect(request?.headers.filter((line) => /^(?:content-length|transfer-)/i.test(line))).toEqual([
      'content-length: 13',
    ]);
  });

  test('case 31: an answer never has a length and chunks, nor anything that belongs to the connection', async () => {
    upstream.answers(
      'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\nKeep-Alive: timeout=1\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    );
    for (const bytes of [POST('{"model":"m"}'), 'GET /ui/x HTTP/1.1\r\nHost: localhost\r\n\r\n']) {
      const { lines, body } = await one(bytes);
      expect(body).toBe('ab');
      expect(
        lines.filter((line) => /^(?:content-length|trailer|proxy-|upgrade)/i.test(line)),
      ).toEqual([]);
      expect(lines.filter((line) => /^transfer-encoding/i.test(line))).toHaveLength(1);
      expect(lines.join('\n')).not.toContain('timeout=1\n');
    }
  });

  test('case 31: a server that sends both itself is a 502', async () => {
    upstream.answers(
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n',
    );
    const answer = await one('GET /ui/x HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect([answer.status, answer.body.includes('"src":"berth"')]).toEqual([502, true]);
  });

  test('case 35: an HTML error of something in between comes as it is', async () => {
    const html = '<html><body>413 Request Entity Too Large</body></html>\n';
    upstream.answers(answerOf(413, 'text/html', html));
    const answer = await one(POST('{"model":"m"}'));
    expect([answer.status, valuesOf(answer, 'content-type'), answer.body]).toEqual([
      413,
      ['text/html'],
      html,
    ]);
  });
});

describe('what passes straight through', () => {
  test.each([301, 302, 307, 308])(
    'row 5, case 21: a %i is relayed and not followed',
    async (status) => {
      upstream.answers(answerOf(status, 'text/html', 'moved', 'Location: /upstream/m/?a=b\r\n'));
      const answer = await one('GET /upstream/m?a=b HTTP/1.1\r\nHost: localhost\r\n\r\n');
      expect([answer.status, valuesOf(answer, 'location'), answer.body]).toEqual([
        status,
        ['/upstream/m/?a=b'],
        'moved',
      ]);
      expect(upstream.requests).toHaveLength(1);
    },
  );

  test.each([
    ['GET', '/no/such', 404, ''],
    ['GET', '/v1/chat/completions', 405, 'Allow: POST\r\n'],
    ['PATCH', '/api/thing?x=%2F..%2f&y=//', 405, ''],
    ['TRACE', '/x', 405, ''],
    ['POST', '/v1/chat/completions/', 404, ''],
    ['POST', '/v1/v1/chat/completions', 404, ''],
    ['POST', '/chat/completions', 404, ''],
  ])(
    "row 1, case 22: %s %s gets the model server's own %i",
    async (method, target, status, more) => {
      upstream.answers(answerOf(status, 'text/plain', '404 page not found\n', more));
      const answer = await one(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
      expect([answer.status, answer.body]).toEqual([status, '404 page not found\n']);
      expect(valuesOf(answer, 'allow')).toEqual(more === '' ? [] : ['POST']);
      expect(upstream.requests[0]?.line).toBe(`${method} ${target} HTTP/1.1`);
    },
  );

  test('row 2: information comes within 100 ms while a job runs', async () => {
    let running: Socket | undefined;
    upstream.script = (socket, { line }) => {
      if (line.startsWith('POST')) running = socket;
      else socket.write(answerOf(200, 'text/plain', line));
    };
    const busy = one(POST('{"model":"m"}'));
    await eventually(() => running !== undefined, { timeoutMs: 5000, what: 'the running job' });
    await one('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
    for (const target of [
      '/v1/models',
      '/running',
      '/health',
      '/logs/stream',
      '/api/metrics/activity',
    ]) {
      const askedAt = performance.now();
      expect((await one(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`)).status).toBe(200);
      expect(performance.now() - askedAt).toBeLessThan(100);
    }
    running?.write(answerOf(200, 'application/json', '{"ok":1}'));
    expect((await busy).body).toBe('{"ok":1}');
  });

  test('row 9: an id that nobody knows is refused at once by the model server while a job runs', async () => {
    let running: Socket | undefined;
    const unknown = answerOf(404, 'application/json', '{"src":"llama-swap","error":"no router"}');
    upstream.script = (socket, { body }) => {
      if (body.includes('"m"')) running = socket;
      else socket.write(unknown);
    };
    const busy = one(POST('{"model":"m"}'));
    await eventually(() => running !== undefined, { timeoutMs: 5000, what: 'the running job' });
    const answer = await one(POST('{"model":"nobody"}'));
    expect([answer.status, answer.body]).toEqual([404, '{"src":"llama-swap","error":"no router"}']);
    running?.write(answerOf(200, 'application/json', '{"ok":1}'));
    await busy;
  });
});

describe('connections that stay or go', () => {
  test('case 45: twenty streams left in the middle leave nothing behind, and the next one is served', async () => {
    const pid = Number(berth.processes.ingress?.child.pid);
    const handles = (): number => readdirSync(`/proc/${pid}/fd`).length;
    await one(POST('{"model":"m"}'));
    const before = handles();
    const open = (socket: Socket): void => {
      socket.write(Buffer.concat([Buffer.from(SSE), chunk(event('1')), chunk(event('2'))]));
    };
    upstream.script = open;
    for (let round = 0; round < 20; round += 1) {
      const client = await RawClient.to(berth.url);
      await client.send(POST());
      await client.until((text) => text.includes(event('2')));
      client.leave();
    }
    streams(event('a'), DONE);
    expect((await one(POST())).body).toBe(event('a') + DONE);
    await eventually(() => upstream.sockets.size <= 4, {
      timeoutMs: 5000,
      what: 'cut connections',
    });
    await eventually(() => handles() <= before + 2, { timeoutMs: 5000, what: 'closed handles' });
  }, 60_000);

  test('case 48: a connection that idles for longer than five seconds still serves', async () => {
    const client = await RawClient.to(berth.url);
    await client.send(POST('{"model":"m"}'));
    const first = await client.answer();
    // Node's own limit would be told here, and would close the connection while a proxy in front keeps it.
    expect(valuesOf(first, 'keep-alive')).toEqual(['timeout=65']);
    await client.send(POST('{"model":"m"}'));
    expect((await client.answer()).status).toBe(200);
    client.leave();
  });
});
