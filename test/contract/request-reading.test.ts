import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { bullClass } from '../../src/adapters/redis/bull-class.ts';
import { endToEnd, requestHeaders } from '../../src/gateway/headers.ts';
import { transientAnswer } from '../../src/gateway/transient-answer.ts';
import { matchRoute, upstreamCandidates } from '../../src/ingress/route-table.ts';
import { TopLevelScan } from '../../src/ingress/top-level-scan.ts';

function scan(
  text: string,
  piece = text.length || 1,
): { model: string | undefined; isStream: boolean } {
  const scanner = new TopLevelScan(['model', 'stream']);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += piece) scanner.push(bytes.subarray(at, at + piece));
  return { model: scanner.string('model'), isStream: scanner.isTrue('stream') };
}

describe('the look into a JSON body', () => {
  test.each([
    ['{"model":"a","stream":true}', 'a', true],
    ['  { "stream" : false , "model" : "org/b:q4" } ', 'org/b:q4', false],
    ['{"messages":[{"model":"inner","stream":true}],"model":"outer"}', 'outer', false],
    ['{"model":"first","model":"second"}', 'first', false],
    ['{"model":12}', '12', false],
    ['{"mod\\u0065l":"escaped key"}', 'escaped key', false],
    ['{"model":"quote \\" and \\\\ slash"}', 'quote " and \\ slash', false],
    ['{"x":"model","model":"y"}', 'y', false],
    ['{"model":"kept","broken', 'kept', false],
    ['[{"model":"in an array"}]', undefined, false],
    ['{"model":{"nested":"no"}}', undefined, false],
    ['', undefined, false],
    ['{"stream":"true","model":"m"}', 'm', false],
  ])('finds in %s the model %s', (text, model, isStream) => {
    expect(scan(text)).toEqual({ model, isStream });
    expect(scan(text, 1)).toEqual({ model, isStream });
  });

  test('agrees with JSON.parse on any object, however it is cut', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.string(),
        fc.boolean(),
        fc.integer({ min: 1, max: 9 }),
        (rest, model, stream, piece) => {
          const others = Object.fromEntries(
            Object.entries(rest).filter(([key]) => key !== 'model' && key !== 'stream'),
          );
          const text = JSON.stringify({ ...others, model, stream, tail: others });
          expect(scan(text, piece)).toEqual({ model, isStream: stream });
        },
      ),
    );
  });
});

describe('routes', () => {
  test.each([
    ['POST', '/v1/chat/completions', true],
    ['POST', '/v1/images/generations', true],
    ['POST', '/v1/audio/transcriptions', true],
    ['GET', '/props', true],
    ['POST', '/upstream/demo/v1/videos', true],
    ['GET', '/upstream/demo/style.css', false],
    ['GET', '/upstream/demo', false],
    ['GET', '/v1/models', false],
    ['GET', '/v1/chat/completions', false],
    ['OPTIONS', '/v1/chat/completions', false],
    ['GET', '/running', false],
    ['GET', '/api/events', false],
    ['POST', '/v1/unknown', false],
  ])('%s %s needs the GPU: %s', (method, path, needsGpu) => {
    expect(matchRoute(method, path).needsGpu).toBe(needsGpu);
  });

  test('ids below /upstream/ are tried longest first, with their slashes', () => {
    expect(upstreamCandidates('/upstream/org/model/v1/x')).toEqual([
      'org/model/v1',
      'org/model',
      'org',
    ]);
    expect(upstreamCandidates('/upstream/a%2Fb/c')).toEqual(['a/b']);
  });
});

describe('headers', () => {
  test('hop-by-hop headers and those that Connection names stay behind, the others keep order and spelling', () => {
    const flat = [
      'Host',
      'x',
      'X-A',
      '1',
      'Connection',
      'close, X-Hop',
      'x-hop',
      'z',
      'x-a',
      '2',
      'TE',
      't',
    ];
    expect(endToEnd(flat)).toEqual(['Host', 'x', 'X-A', '1', 'x-a', '2']);
    expect(requestHeaders(flat, new Set(['x-a']))).toEqual([]);
  });
});

describe("the model server's passing states", () => {
  const own = (message: string, code = 'x'): string =>
    JSON.stringify({ src: 'llama-swap', error: { message, code } });
  test.each([
    [502, '', true],
    [503, own('[m] process is not ready'), true],
    [
      429,
      JSON.stringify({ error: { message: 'Too many requests', code: 'concurrency_limit' } }),
      true,
    ],
    [429, JSON.stringify({ error: 'Too many requests' }), true],
    [500, own('unspecific error: group: model unloaded'), true],
    [
      500,
      JSON.stringify({ src: 'llama-swap', error: 'unspecific error: group is shutting down' }),
      true,
    ],
    [500, own('unspecific error: out of memory'), false],
    [500, JSON.stringify({ error: { message: 'model unloaded' } }), false],
    [503, JSON.stringify({ error: { message: 'Loading model' } }), true],
    [503, JSON.stringify({ error: { message: 'overloaded' } }), false],
    [404, own('no router for requested model'), false],
  ])('%i with %s is one: %s', (status, body, is) => {
    expect(transientAnswer(status, [], body) !== undefined).toBe(is);
  });

  test('Retry-After in seconds is heard, other forms are not', () => {
    const body = JSON.stringify({ error: { code: 'concurrency_limit' } });
    expect(transientAnswer(429, ['retry-after', '7'], body)?.askedMs).toBe(7000);
    expect(transientAnswer(429, ['Retry-After', 'soon'], body)?.askedMs).toBeUndefined();
  });
});

test("BullMQ's number falls as points rise and never leaves its range", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -10_100, max: 10_100 }),
      fc.integer({ min: 1, max: 500 }),
      (points, more) => {
        expect(bullClass(points + more)).toBeLessThan(bullClass(points));
      },
    ),
  );
  expect([bullClass(-1e9), bullClass(1e9)]).toEqual([2_097_151, 2]);
});
