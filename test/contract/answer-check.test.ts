import { describe, expect, test } from '@jest/globals';
import { AnswerCheck } from '../../src/gateway/answer-check.ts';
import type { AnswerTraits } from '../../src/gateway/answer-check.ts';

const SSE = ['Content-Type', 'text/event-stream; charset=utf-8'];
const JSON_TYPE = ['content-type', 'application/json'];

function verdict(text: string, traits: Partial<AnswerTraits> = {}): string {
  const check = new AnswerCheck({
    method: 'POST',
    target: '/v1/chat/completions',
    kind: 'text',
    status: 200,
    headers: SSE,
    ...traits,
  });
  const early = check.atHead();
  if (early !== undefined) return early.code;
  if (text !== '') check.push(Buffer.from(text));
  return check.atEnd()?.code ?? 'clean';
}

const TRUNCATED = 'model_server_truncated';
const INVALID = 'model_server_invalid';
const event = (type: string): string => `event: ${type}\ndata: {"type":"${type}"}\n\n`;
const unnamed = (type: string): string => `data: {"type":"${type}"}\n\n`;
const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n';
const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

describe('a stream that ends', () => {
  test.each([
    ['/v1/chat/completions', `${chunk}data: [DONE]\n\n`, 'clean'],
    ['/v1/chat/completions', `${chunk}${finish}`, 'clean'],
    ['/v1/chat/completions', `${finish}data: {"choices":[],"usage":{}}\n\n`, 'clean'],
    ['/v1/chat/completions?x=1', chunk, TRUNCATED],
    ['/v1/chat/completions', ': only a comment\n\n', TRUNCATED],
    ['/v1/chat/completions', `${chunk}data: {"error":{"code":400,"message":"long"}}\n\n`, INVALID],
    ['/v1/chat/completions', 'error: {"code":400}\n\ndata: [DONE]\n\n', INVALID],
    ['/v1/chat/completions', `data: {"choices":[],"error":null}\n\n${finish}`, 'clean'],
    ['/upstream/a/b/v1/chat/completions', chunk, TRUNCATED],
    ['/v/completions', chunk, TRUNCATED],
    ['/completion', 'data: {"content":"a","stop":false}\n\n', TRUNCATED],
    ['/completion', 'data: {"content":"","stop":true}\n\n', 'clean'],
    ['/v/completions', 'data: {"content":"","stop":true}\n\n', 'clean'],
    ['/v/completions', 'data: {"content":"\\"stop\\": true","stop":false}\n\n', TRUNCATED],
    ['/v1/responses', event('response.created'), TRUNCATED],
    ['/v1/responses', event('response.completed'), 'clean'],
    ['/v1/responses', unnamed('response.incomplete'), 'clean'],
    ['/v1/responses', event('response.failed'), INVALID],
    ['/v1/messages', event('message_start') + event('ping'), TRUNCATED],
    ['/v1/messages', event('message_start') + event('message_stop'), 'clean'],
    ['/v1/messages', event('error'), INVALID],
    ['/v1/audio/speech', event('speech.audio.delta'), 'clean'],
  ])('%s: %j is %s', (target, text, expected) => {
    expect(verdict(text, { target })).toBe(expected);
  });
});

describe('an answer in one piece', () => {
  test.each([
    ['nothing', '', {}, INVALID],
    ['nothing to HEAD', '', { method: 'HEAD' }, 'clean'],
    ['nothing with 204', '', { status: 204 }, 'clean'],
    ['nothing from a page below a model', '', { kind: 'other' }, 'clean'],
    ['half of its JSON', '{"choices":[{"mess', { headers: JSON_TYPE }, TRUNCATED],
    ['all of its JSON', '{"a":"}"}\n', { headers: JSON_TYPE }, 'clean'],
    ['what its length says', '{"a', { headers: [...JSON_TYPE, 'Content-Length', '3'] }, 'clean'],
    ['a web page', '<html>', { headers: ['content-type', 'text/html'] }, INVALID],
    [
      'a web page below a model',
      '<html>',
      { headers: ['content-type', 'text/html'], kind: 'other' },
      'clean',
    ],
    [
      'an error page, which is passed on',
      '<html>',
      { headers: ['content-type', 'text/html'], status: 404 },
      'clean',
    ],
    [
      'a coded stream, which cannot be read',
      'x',
      { headers: [...SSE, 'content-encoding', 'gzip'] },
      'clean',
    ],
    ['sound', 'RIFF', { headers: ['content-type', 'audio/wav'], kind: 'audio' }, 'clean'],
  ] as const)('that is %s', (_name, text, traits, expected) => {
    expect(verdict(text, traits)).toBe(expected);
  });
});

test('what breaks after the last word of a stream does no harm, unless the stream said an error', () => {
  const traits = { method: 'POST', target: '/v1/completions', kind: 'text', status: 200 } as const;
  const done = new AnswerCheck({ ...traits, headers: SSE });
  done.push(Buffer.from(finish));
  expect(done.isDone).toBe(false);
  done.push(Buffer.from('data: [DONE]\n\n'));
  expect(done.isDone).toBe(true);
  const failed = new AnswerCheck({ ...traits, headers: SSE });
  failed.push(Buffer.from('data: {"error":"x"}\n\ndata: [DONE]\n\n'));
  expect(failed.isDone).toBe(false);
});
