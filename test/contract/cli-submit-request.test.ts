import { expect, test } from '@jest/globals';
import { submitRequest } from '../../src/cli/submit-request.ts';
import type { SubmitOptions } from '../../src/cli/submit-request.ts';

const files: Readonly<Record<string, Buffer>> = {
  'body.json': Buffer.from('{"prompt": "a pier" }\n'),
  'talk.wav': Buffer.from([0, 255, 13, 10]),
  '-': Buffer.from('{"prompt":"from a pipe"}'),
};
const made = (options: SubmitOptions) =>
  submitRequest(options, (file) => files[file] ?? Buffer.alloc(0));

test('data goes out byte by byte, unless a model is put into it', () => {
  expect(made({ data: '@body.json' }).body).toEqual(files['body.json']);
  expect(made({ data: '-' }).body).toEqual(files['-']);
  expect(made({ data: '@body.json', model: 'flux' }).body.toString()).toBe(
    '{"prompt":"a pier","model":"flux"}',
  );
  expect(made({ model: 'flux' }).body.toString()).toBe('{"model":"flux"}');
});

test('a form has its fields and files, and the same options give the same bytes', () => {
  const options = { model: 'whisper', form: ['language=en', 'file=@talk.wav'] };
  const { headers, body } = made(options);
  const [, boundary = ''] = /boundary=(\S+)$/.exec(String(headers['content-type'])) ?? [];
  const text = body.toString('latin1');
  const parts = text.split(`--${boundary}`).slice(1, -1);
  expect(parts).toHaveLength(3);
  expect(parts[0]).toBe('\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n');
  expect(parts[2]).toContain('name="file"; filename="talk.wav"\r\nContent-Type: audio/');
  expect(parts[2]?.endsWith('\r\n\r\n\u0000\u00ff\r\n\r\n')).toBe(true);
  expect(text.endsWith(`--${boundary}--\r\n`)).toBe(true);
  expect(made(options)).toEqual({ headers, body });
});

test('options and headers say how urgent it is and who is told', () => {
  const { headers } = made({
    header: ['X-Trace: 7', 'Cancel-After:15m'],
    intent: 'image',
    priority: '-98',
    tier: 'pro',
    deadline: '600',
    webhook: 'https://example.org/hook',
  });
  expect(headers).toEqual({
    'x-trace': '7',
    'cancel-after': '15m',
    'x-berth-intent': 'image',
    'x-llamaswap-priority': '-98',
    'x-berth-tier': 'pro',
    'x-berth-start-deadline': '600',
    'x-berth-webhook': 'https://example.org/hook',
    'content-type': 'application/json',
  });
});

test.each<[SubmitOptions, RegExp]>([
  [{ data: '{x' }, /--data is not JSON/],
  [{ data: '[1]', model: 'flux' }, /no JSON object/],
  [{ data: '{}', form: ['a=b'] }, /exclude each other/],
  [{ form: ['=x'] }, /name=value/],
  [{ header: ['no colon'] }, /Name: value/],
  [{ header: ['Bad: \u0007'] }, /Name: value/],
  [{ priority: '1e2' }, /whole number/],
  [{ data: 'x', model: 'm', header: ['Content-Type: text/plain'] }, /neither/],
])('%j is refused before anything is sent', (options, why) => {
  expect(() => made(options)).toThrow(why);
});
