import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { RawClient, valuesOf } from '../support/raw-client.ts';
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

const JSON_BODY = '{"model":"m"}';
const HEAD = `Host: localhost\r\nContent-Type: application/json\r\n`;
const CHAT = `POST /v1/chat/completions HTTP/1.1\r\n${HEAD}`;
const CHAT_WHOLE = `${CHAT}Content-Length: 13\r\n\r\n${JSON_BODY}`;

/** Everything that comes back for some bytes until the other side closes. */
async function everything(bytes: string): Promise<string> {
  const client = await RawClient.to(berth.url);
  await client.send(bytes);
  return client.closed();
}

async function one(bytes: string): Promise<RawAnswer> {
  const client = await RawClient.to(berth.url);
  await client.send(bytes);
  const answer = await client.answer();
  client.leave();
  return answer;
}

const codeOf = (answer: RawAnswer): string =>
  (JSON.parse(answer.body) as { error: { code: string } }).error.code;

describe('what could be read in two ways is refused, and the connection is closed behind it', () => {
  test.each([
    [
      'length and chunks',
      `${CHAT}Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['two lengths', `${CHAT}Content-Length: 13\r\nContent-Length: 14\r\n\r\n${JSON_BODY}`],
    ['two equal lengths', `${CHAT}Content-Length: 13\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    ['a signed length', `${CHAT}Content-Length: +13\r\n\r\n${JSON_BODY}`],
    ['a length in hex', `${CHAT}Content-Length: 0xd\r\n\r\n${JSON_BODY}`],
    ['an unknown transfer coding', `${CHAT}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`],
    ['chunked not last', `${CHAT}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
    ['a blank before the colon', `${CHAT}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`],
    ['a folded header', `${CHAT}X-A: b\r\n c\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    ['a bare line feed', `${CHAT}X-A: b\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    ['a bare carriage return', `${CHAT}X-A: b\rX-B: c\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    ['a zero byte in a value', `${CHAT}X-A: b\0\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    ['no chunk size', `${CHAT}Transfer-Encoding: chunked\r\n\r\nzz\r\n${JSON_BODY}\r\n0\r\n\r\n`],
    [
      'a line feed in a chunk extension',
      `${CHAT}Transfer-Encoding: chunked\r\n\r\nd;a\nb\r\n${JSON_BODY}\r\n0\r\n\r\n`,
    ],
    ['no Host', `POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    ['two Hosts', `${CHAT}Host: other\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`],
    [
      'two Authorizations',
      `${CHAT}Authorization: Bearer a\r\nAuthorization: Bearer b\r\nContent-Length: 13\r\n\r\n${JSON_BODY}`,
    ],
    ['HTTP/0.9 with a body', `GET /x\nHost: a\r\nContent-Length: 5\r\n\r\nhello`],
    ['HTTP/0.9', `GET /health\r\n\r\n`],
    ['HTTP/1.2', `GET /health HTTP/1.2\r\nHost: localhost\r\n\r\n`],
    ['HTTP/2.0', `GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n`],
    ['a target without a slash', `GET health HTTP/1.1\r\nHost: localhost\r\n\r\n`],
    ['a blank in the target', `GET /health now HTTP/1.1\r\nHost: localhost\r\n\r\n`],
  ])('%s', async (_what, bytes) => {
    const got = await everything(`${bytes}GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    expect(got).toMatch(/^HTTP\/1\.1 (?:400|505) /);
    expect(got.match(/HTTP\/1\.1 \d/g)).toHaveLength(1);
    // A body that breaks off later may have had its head passed on; nothing else ever is.
    expect(upstream.requests).toEqual([]);
  });

  test('case 82: a request hidden in the body of another one stays a body', async () => {
    const hidden = 'GET /admin HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const size = hidden.length.toString(16);
    upstream.answers(answerOf(200, 'text/plain', 'x'));
    await one(
      `DELETE /jobs/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${size}\r\n${hidden}\r\n0\r\n\r\n`,
    );
    expect(upstream.requests.map(({ line, body }) => [line, body.toString()])).toEqual([
      ['DELETE /jobs/x HTTP/1.1', hidden],
    ]);
  });

  test('headers of 60 kB pass, of 70 kB are a 431', async () => {
    const wide = (bytes: number): string =>
      `GET /x HTTP/1.1\r\nHost: localhost\r\nX-Wide: ${'w'.repeat(bytes)}\r\n\r\n`;
    expect((await one(wide(60_000))).status).toBe(200);
    expect(upstream.requests[0]?.headers).toContain(`X-Wide: ${'w'.repeat(60_000)}`);
    expect(await everything(wide(70_000))).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe('a request target means one path on one host', () => {
  test.each([
    ['another host', 'http://evil.test/x', 400],
    ['another host with ours as user', 'http://localhost@evil.test/x', 400],
    ['a climb', '/upstream/m/../../unload', 400],
    ['a coded climb', '/upstream/m/%2e%2e/%2e%2e/unload', 400],
    ['a half coded climb', '/upstream/m/.%2e/unload', 400],
    ['a climb with a coded slash', '/upstream/m/..%2funload', 400],
    ['a climb coded twice', '/upstream/m/%252e%252e/unload', 400],
    ['a climb behind a parameter', '/upstream/m/..;/unload', 400],
    ['a dot segment', '/v1/./chat/completions', 400],
    ['a backslash', '/\\evil.test/x', 400],
    ['a coded backslash', '/upstream/m/..%5cunload', 400],
    ['a coded zero byte', '/upstream/m/a%00b', 400],
    ['a coded line break', '/upstream/m/a%0d%0ab', 400],
    ['a fragment', '/unload#x', 400],
    ['a doubled slash (case 22)', '//v1/chat/completions', 404],
    ['a host after two slashes (case 22)', '//evil.test/x', 404],
    ['a doubled slash within', '/v1//chat/completions', 404],
  ])('%s is refused: %s', async (_what, target, status) => {
    const answer = await one(`GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toMatchObject({ src: 'berth' });
    expect(valuesOf(answer, 'location')).toEqual([]);
    expect(upstream.requests).toEqual([]);
  });

  test('the path that was meant by doubled slashes is told', async () => {
    const answer = await one(
      `POST //v1/chat/completions HTTP/1.1\r\n${HEAD}Content-Length: 13\r\n\r\n${JSON_BODY}`,
    );
    expect(answer.body).toContain('/v1/chat/completions was meant');
  });

  test.each([
    [
      'an absolute target of this host',
      'http://localhost/v1/chat/completions',
      '/v1/chat/completions',
    ],
    ['letters coded for no reason', '/v1/%63hat/completions', '/v1/chat/completions'],
    ['a coded first segment', '/%75pstream/m/a%41', '/upstream/m/a%41'],
    [
      'a coded slash of a model id',
      '/upstream/org%2Fmodel%3Atag/v1/x',
      '/upstream/org%2Fmodel%3Atag/v1/x',
    ],
  ])('%s is queued like its plain form', async (_what, target, sent) => {
    const answer = await one(
      `POST ${target} HTTP/1.1\r\n${HEAD}Content-Length: 13\r\n\r\n${JSON_BODY}`,
    );
    expect(answer.status).toBe(200);
    expect(valuesOf(answer, 'x-berth-job-id')).toHaveLength(1);
    expect(upstream.requests.map(({ line }) => line)).toEqual([`POST ${sent} HTTP/1.1`]);
  });
});

describe('connections', () => {
  test('HTTP/1.0 clients get an answer without chunks, and the end of the connection', async () => {
    upstream.answers(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n',
    );
    const got = await everything(
      `POST /v1/completions HTTP/1.0\r\n${HEAD}Content-Length: 13\r\n\r\n${JSON_BODY}`,
    );
    expect(got).toMatch(/^HTTP\/1\.1 200 /);
    expect(got.toLowerCase()).not.toContain('transfer-encoding');
    expect(got).toMatch(/\r\n\r\nabc$/);
  });

  test('HEAD brings the headers of GET, its length too, and no body', async () => {
    upstream.answers('HTTP/1.1 200 OK\r\nContent-Length: 42\r\nX-A: b\r\n\r\n');
    const client = await RawClient.to(berth.url);
    await client.send('HEAD /ui/x HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const head = await client.until((text) => text.includes('\r\n\r\n'));
    expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\nContent-Length: 42\r\nX-A: b\r\n/);
    upstream.answers(answerOf(200, 'text/plain', 'next'));
    await client.send('GET /ui/y HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(await client.until((text) => text.endsWith('next'))).toMatch(
      /HTTP\/1\.1 200 [^]*HTTP\/1\.1 200 /,
    );
    client.leave();
  });

  test('Expect: 100-continue gets its 100 before the body, and the body arrives', async () => {
    const client = await RawClient.to(berth.url);
    await client.send(`${CHAT}Content-Length: 13\r\nExpect: 100-continue\r\n\r\n`);
    await client.until((text) => text === 'HTTP/1.1 100 Continue\r\n\r\n');
    await client.send(JSON_BODY);
    expect((await client.answer()).status).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toBe(JSON_BODY);
    expect(upstream.requests[0]?.headers.join('\n')).not.toMatch(/expect/i);
    client.leave();
  });

  test('whoever is refused gets no 100, and the connection ends', async () => {
    const got = await everything(
      `POST http://evil.test/ HTTP/1.1\r\n${HEAD}Content-Length: 13\r\nExpect: 100-continue\r\n\r\n`,
    );
    expect(got).toMatch(/^HTTP\/1\.1 400 /);
    expect(await everything(`${CHAT}Expect: miracles\r\nConnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 417 /,
    );
  });

  test('a connection goes on after an error and after pipelined requests, answers in order', async () => {
    const client = await RawClient.to(berth.url);
    upstream.script = (socket, { line }) =>
      void socket.write(answerOf(line.includes('first') ? 404 : 200, 'text/plain', line));
    await client.send(
      `GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n${CHAT_WHOLE}GET /third HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    const answers = [await client.answer(), await client.answer(), await client.answer()];
    expect(answers.map(({ status, body }) => [status, body])).toEqual([
      [404, 'GET /first HTTP/1.1'],
      [200, 'POST /v1/chat/completions HTTP/1.1'],
      [200, 'GET /third HTTP/1.1'],
    ]);
    client.leave();
  });

  test('an upload that is answered early ends in that answer, and the connection serves the next request', async () => {
    const client = await RawClient.to(berth.url);
    const body = `{"model":"m","x":"${'x'.repeat(600_000)}"}`;
    await client.send(`${CHAT}Content-Encoding: zstd\r\nContent-Length: ${body.length}\r\n\r\n`);
    const refused = await client.answer();
    expect([refused.status, codeOf(refused)]).toEqual([415, 'unsupported_encoding']);
    await client.send(body);
    await client.send(CHAT_WHOLE);
    expect((await client.answer()).body).toBe('{"ok":true}');
    client.leave();
  });

  test('an upload past the queue that the model server answers early ends in its answer', async () => {
    upstream.onHead = (socket) => {
      socket.write(answerOf(413, 'text/plain', 'too much', 'Connection: close\r\n'));
      socket.end();
    };
    const client = await RawClient.to(berth.url);
    await client.send(
      'PUT /api/thing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n01234',
    );
    const answer = await client.answer();
    expect([answer.status, answer.body]).toEqual([413, 'too much']);
    client.leave();
  });
});

describe('pages of other origins', () => {
  const ORIGIN = 'Origin: http://app.test\r\n';

  test.each(['/v1/chat/completions', '/nowhere', '/v1/models', '*', '//x'])(
    'row 14, cases 24 and 25: OPTIONS %s is a 204 with the five facts, without the model server',
    async (target) => {
      const asked = 'authorization,x-stainless-os, x-priority,<script>';
      const answer = await one(
        `OPTIONS ${target} HTTP/1.1\r\nHost: localhost\r\n${ORIGIN}Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: ${asked}\r\n\r\n`,
      );
      expect(answer.status).toBe(204);
      expect(answer.lines.filter((line) => line.startsWith('Access-Control'))).toEqual([
        'Access-Control-Allow-Origin: *',
        'Access-Control-Allow-Methods: GET, POST, PUT, PATCH, DELETE, OPTIONS',
        'Access-Control-Allow-Headers: authorization, x-stainless-os, x-priority',
        'Access-Control-Max-Age: 86400',
      ]);
      expect(upstream.requests).toEqual([]);
    },
  );

  test("Berth's own routes are granted to no other origin", async () => {
    const answer = await one(
      `OPTIONS /berth/board/api/queues HTTP/1.1\r\nHost: localhost\r\n${ORIGIN}\r\n`,
    );
    expect(answer.status).toBe(204);
    expect(answer.lines.join()).not.toContain('Access-Control');
    const missing = await one(`GET /berth/jobs/x HTTP/1.1\r\nHost: localhost\r\n${ORIGIN}\r\n`);
    expect(missing.lines.join()).not.toContain('Access-Control');
  });

  test('cases 26 and 27: the origin is allowed exactly once, on answers, streams and errors', async () => {
    const allowed = 'Access-Control-Allow-Origin: *\r\n';
    upstream.answers(answerOf(200, 'application/json', '{}', allowed));
    const withOrigin = CHAT_WHOLE.replace('\r\n\r\n', `\r\n${ORIGIN}\r\n`);
    expect(valuesOf(await one(withOrigin), 'access-control-allow-origin')).toEqual(['*']);
    upstream.answers(answerOf(200, 'text/event-stream', 'data: [DONE]\n\n', allowed));
    expect(valuesOf(await one(withOrigin), 'access-control-allow-origin')).toEqual(['*']);
    const refused = await one(
      withOrigin.replace('Content-Type', 'Content-Encoding: zstd\r\nContent-Type'),
    );
    expect([refused.status, valuesOf(refused, 'access-control-allow-origin')]).toEqual([
      415,
      ['*'],
    ]);
  });
});
