import { createHash } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { BerthSystem } from '../support/berth-system.ts';
import { peakBytes } from '../support/peak-memory.ts';
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

interface Posted {
  method?: string;
  target?: string;
  /** Whole lines, without Host and Content-Length. */
  headers?: readonly string[];
  body: string | Buffer;
}

const JSON_TYPE = 'Content-Type: application/json';
const bytesOf = (body: string | Buffer): Buffer =>
  typeof body === 'string' ? Buffer.from(body, 'latin1') : body;

async function post(posted: Posted): Promise<RawAnswer> {
  const { method = 'POST', target = '/v1/chat/completions', headers = [JSON_TYPE] } = posted;
  const body = bytesOf(posted.body);
  const lines = ['Host: localhost', ...headers, `Content-Length: ${body.length}`];
  const client = await RawClient.to(berth.url);
  await client.send(`${method} ${target} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  await client.send(body);
  const answer = await client.answer(30_000);
  client.leave();
  return answer;
}

const isQueued = (answer: RawAnswer): boolean => valuesOf(answer, 'x-berth-job-id').length === 1;
const codeOf = (answer: RawAnswer): string =>
  (JSON.parse(answer.body) as { error: { code: string } }).error.code;
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

const part = (name: string, value: string, more = ''): string =>
  `--b\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
const FORM = 'Content-Type: multipart/form-data; boundary=b';

describe('row 8: the model is found by the rules of llama-swap', () => {
  test.each<[what: string, posted: Posted]>([
    ['JSON', { body: '{"model":"m"}' }],
    ['broken JSON (row 7)', { body: '{"model":"m", oh' }],
    ['JSON with equal keys: the first', { body: '{"model":"m","model":"nobody"}' }],
    ['JSON behind a byte order mark', { body: '\xef\xbb\xbf{"model":"m"}' }],
    ['a type with parameters', { headers: [`${JSON_TYPE}; charset=utf-8`], body: '{"model":"m"}' }],
    [
      'a form, the model last',
      {
        target: '/v1/audio/transcriptions',
        headers: [FORM],
        body: `${part('file', 'x'.repeat(900_000), '; filename="a.wav"')}${part('model', 'whisper-1')}--b--\r\n`,
      },
    ],
    [
      'a form, the model first',
      {
        target: '/v1/audio/transcriptions',
        headers: [FORM],
        body: `${part('model', 'whisper-1')}${part('file', 'x', '; filename="a.wav"')}--b--\r\n`,
      },
    ],
    [
      'a form that breaks off behind the model',
      {
        target: '/v1/images/edits',
        headers: [FORM],
        body: `${part('model', 'm')}--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxx`,
      },
    ],
    [
      'the query of a form, before its field',
      {
        target: '/v1/images/edits?model=m',
        headers: [FORM],
        body: `${part('model', 'nobody')}--b--\r\n`,
      },
    ],
    [
      'an urlencoded body',
      {
        headers: ['Content-Type: application/x-www-form-urlencoded'],
        body: 'a=b&model=org%2Fmodel%3Atag',
      },
    ],
    ['the query, without a type', { target: '/v1/completions?model=m', headers: [], body: 'x' }],
    ['the query of GET', { method: 'GET', target: '/props?model=m', headers: [], body: '' }],
    ['the path', { target: '/upstream/m/v1/x', body: '{"model":"nobody"}' }],
    [
      'case 19: a path with slashes, the longest that is known',
      { target: '/upstream/org/model:tag/v1/x', body: '' },
    ],
    [
      'case 19: a path with coded slashes',
      { target: '/upstream/org%2Fmodel%3Atag/v1/x', body: '' },
    ],
  ])('%s', async (_what, posted) => {
    const answer = await post(posted);
    expect([answer.status, isQueued(answer)]).toEqual([200, true]);
    expect(upstream.requests.map(({ body }) => sha256(body))).toEqual([
      sha256(bytesOf(posted.body)),
    ]);
    expect(upstream.requests[0]?.line).toContain(` ${posted.target ?? '/v1/chat/completions'} `);
  });

  test.each<[what: string, posted: Posted]>([
    ['JSON without a type', { headers: [], body: '{"model":"m"}' }],
    ['no model', { body: '{"messages":[{"model":"m"}]}' }],
    ['a null before the name', { body: '{"model":null,"model":"m"}' }],
    ['an object for a model', { body: '{"model":{"model":"m"}}' }],
    ['a second document', { body: '{} {"model":"m"}' }],
    [
      'a form without a boundary',
      { headers: ['Content-Type: multipart/form-data'], body: part('model', 'm') },
    ],
    [
      'a form that breaks off within a file',
      {
        headers: [FORM],
        body: '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nxx',
      },
    ],
    [
      'a file called model',
      { headers: [FORM], body: `${part('model', 'm', '; filename="m"')}--b--\r\n` },
    ],
    ['a form of nothing', { headers: [FORM], body: '' }],
    ['GET without a query', { method: 'GET', target: '/props', headers: [], body: '' }],
  ])(
    "none in %s: the model server's own refusal, unqueued, its bytes as they were",
    async (_what, posted) => {
      upstream.answers(
        answerOf(404, 'application/json', '{"error":"no model id could be identified"}'),
      );
      const answer = await post(posted);
      expect([answer.status, isQueued(answer), answer.body]).toEqual([
        404,
        false,
        '{"error":"no model id could be identified"}',
      ]);
      expect(upstream.requests[0]?.body.toString('latin1')).toBe(posted.body);
    },
  );
});

describe('coded bodies are decoded for the look alone', () => {
  const plain = Buffer.from('{"model":"m","messages":[]}');

  test.each([
    ['gzip', gzipSync(plain)],
    ['x-gzip', gzipSync(plain)],
    ['deflate', deflateSync(plain)],
    ['br', brotliCompressSync(plain)],
    ['identity', plain],
  ])('%s', async (coding, body) => {
    const answer = await post({ headers: [JSON_TYPE, `Content-Encoding: ${coding}`], body });
    expect([answer.status, isQueued(answer)]).toEqual([200, true]);
    expect(upstream.requests[0]?.body).toEqual(body);
    expect(upstream.requests[0]?.headers).toContain(`Content-Encoding: ${coding}`);
  });

  test('an unknown coding is no matter where the path names the model', async () => {
    const body = Buffer.from('(anything)');
    const headers = [JSON_TYPE, 'Content-Encoding: zstd'];
    const answer = await post({ target: '/upstream/m/v1/any', headers, body });
    expect([answer.status, isQueued(answer)]).toEqual([200, true]);
    expect(upstream.requests[0]?.body).toEqual(body);
  });

  test.each([
    ['not what it says', 'gzip', Buffer.from('plain'), 400, 'bad_request'],
    ['broken off', 'gzip', gzipSync(plain).subarray(0, 20), 400, 'bad_request'],
    [
      'broken off',
      'br',
      brotliCompressSync(Buffer.alloc(9000, 'ab c')).subarray(0, 9),
      400,
      'bad_request',
    ],
    ['unknown', 'zstd', plain, 415, 'unsupported_encoding'],
    ['two at once', 'gzip, br', plain, 415, 'unsupported_encoding'],
    ['a bomb', 'gzip', gzipSync(Buffer.alloc(300 * 1024 * 1024)), 413, 'body_too_large'],
  ])('%s (%s) is refused', async (_what, coding, body, status, code) => {
    const answer = await post({ headers: [JSON_TYPE, `Content-Encoding: ${coding}`], body });
    expect([answer.status, codeOf(answer)]).toEqual([status, code]);
    expect(upstream.requests).toEqual([]);
  });
});

describe('large uploads pass in bounded memory', () => {
  const peakOf = (name: 'ingress' | 'gpu'): number => peakBytes(berth.processes[name]?.child.pid);
  const MEGABYTE = 1024 * 1024;

  test.each([
    [
      'row 11, case 33: a form of 100 MB, the model behind the file',
      100,
      '/v1/audio/transcriptions',
      FORM,
    ],
    ['row 11: a JSON of 50 MB', 50, '/v1/chat/completions', JSON_TYPE],
  ])(
    '%s',
    async (_what, megabytes, target, type) => {
      const before = { ingress: peakOf('ingress'), gpu: peakOf('gpu') };
      const filling = Buffer.alloc(MEGABYTE, 'A1+/');
      const [start, end] =
        type === FORM
          ? [
              '--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n',
              `\r\n${part('model', 'whisper-1')}--b--\r\n`,
            ]
          : ['{"messages":[{"content":"', '"}],"model":"m"}'];
      const client = await RawClient.to(berth.url);
      const length = start.length + megabytes * MEGABYTE + end.length;
      await client.send(
        `POST ${target} HTTP/1.1\r\nHost: localhost\r\n${type}\r\nContent-Length: ${length}\r\n\r\n${start}`,
      );
      const hash = createHash('sha256').update(start);
      for (let sent = 0; sent < megabytes; sent += 1) {
        hash.update(filling);
        await client.send(filling);
      }
      await client.send(end);
      const answer = await client.answer(30_000);
      client.leave();
      expect([answer.status, isQueued(answer)]).toEqual([200, true]);
      expect(upstream.requests.map(({ bodyBytes, bodySha256 }) => [bodyBytes, bodySha256])).toEqual(
        [[length, hash.update(end).digest('hex')]],
      );
      expect(upstream.requests[0]?.headers).toContain(`content-length: ${length}`);
      expect(peakOf('ingress') - before.ingress).toBeLessThan(48 * MEGABYTE);
      expect(peakOf('gpu') - before.gpu).toBeLessThan(48 * MEGABYTE);
    },
    60_000,
  );
});

test('row 6: bytes, headers and borders of any request and answer come out as they went in', async () => {
  const seed = Number(process.env.FUZZ_SEED ?? Date.now() % 2 ** 31);
  const bytes = fc.uint8Array({ minLength: 1, maxLength: 5000 }).map((array) => Buffer.from(array));
  const casing = fc.constantFrom('X-Fuzz-A', 'x-fuzz-b', 'X-FUZZ-C', 'x-FuZz-a');
  const value = fc
    .array(
      fc.constantFrom('a', 'Z', '0', ' ', ',', ';', '"', '=', '%', '\\', '/', '\xe9', '\xff'),
      { minLength: 1, maxLength: 30 },
    )
    .map((signs) => `v${signs.join('')}v`);
  const headers = fc.array(fc.tuple(casing, value), { maxLength: 6 });
  await fc
    .assert(
      fc.asyncProperty(
        bytes,
        headers,
        fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        fc.boolean(),
        async (body, fields, borders, asksInChunks, answersInChunks) => {
          upstream.reset();
          const lines = fields.map(([name, text]) => `${name}: ${text}`);
          upstream.script = async (socket, request) => {
            const head = `HTTP/1.1 200 OK\r\n${lines.map((line) => `${line}\r\n`).join('')}`;
            const [type, ...pieces] = framed(request.body, borders, answersInChunks);
            socket.write(`${head}${type}\r\n\r\n`, 'latin1');
            for (const piece of pieces) await new Promise((sent) => socket.write(piece, sent));
          };
          const client = await RawClient.to(berth.url);
          const [type, ...pieces] = framed(body, borders, asksInChunks);
          await client.send(
            `POST /v1/completions?model=m HTTP/1.1\r\nHost: localhost\r\n${lines.map((line) => `${line}\r\n`).join('')}${type}\r\n\r\n`,
          );
          for (const piece of pieces) await client.send(piece);
          const answer = await client.answer();
          client.leave();
          const [request] = upstream.requests;
          expect(request?.body).toEqual(body);
          expect(request?.headers.filter((line) => /^x-fuzz/i.test(line))).toEqual(lines);
          expect(Buffer.from(answer.body, 'latin1')).toEqual(body);
          expect(answer.lines.filter((line) => /^x-fuzz/i.test(line))).toEqual(lines);
        },
      ),
      { seed, numRuns: 60, endOnFailure: true },
    )
    .catch((error: unknown) => {
      throw new Error(`seed ${seed}: ${String((error as { cause?: unknown }).cause)}`, {
        cause: error,
      });
    });
}, 60_000);

/** A framing header line and the pieces of a body, cut at the borders. */
function framed(
  body: Buffer,
  borders: readonly number[],
  inChunks: boolean,
): [string, ...Buffer[]] {
  const pieces: Buffer[] = [];
  for (let at = 0, turn = 0; at < body.length; turn += 1) {
    const size = borders[turn % borders.length] ?? 1;
    pieces.push(body.subarray(at, at + size));
    at += size;
  }
  if (!inChunks) return [`Content-Length: ${body.length}`, ...pieces];
  const chunks = pieces.map((piece) =>
    Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
  );
  return ['Transfer-Encoding: chunked', ...chunks, Buffer.from('0\r\n\r\n')];
}
