import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findModelField } from '../../src/demo-model-server/model-field.ts';

describe('the model a request names', () => {
  const found = (body: string, contentType = 'application/json', query = ''): string =>
    findModelField({
      method: 'POST',
      contentType,
      query: new URLSearchParams(query),
      body: Buffer.from(body),
    });

  test.each([
    ['{"model":"a"', 'a'],
    ['{"messages":[{"model":"x"}],"model":"a"}', 'a'],
    ['{"model":"a","model":"b"}', 'a'],
    ['{"text":"\\\\\\"model\\":","model":"a \\u00e9"}', 'a é'],
    ['{"model":7}', '7'],
    ['{"model":null}', ''],
    ['{"prompt":"model"}', ''],
    ['not json', ''],
    ['', ''],
  ])('in %s it is "%s"', (body, model) => {
    expect(found(body)).toBe(model);
    expect(found(body, 'application/json; charset=utf-8', 'model=q')).toBe(model);
  });

  test('in any JSON object it is what a parser finds', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.string(), (rest, model) => {
        const body = JSON.stringify({ ...rest, model });
        expect(found(body)).toBe(model);
      }),
    );
  });

  test('behind a string of many megabytes it is found', () => {
    const image = 'A'.repeat(40_000_000) + '\\"'.repeat(1000);
    expect(found(`{"image":"${image}","model":"a"}`)).toBe('a');
  });

  test('without a JSON content type it comes from the form or the query', () => {
    expect(found('{"model":"a"}', '')).toBe('');
    expect(found('model=a&x=1', 'application/x-www-form-urlencoded', 'model=q')).toBe('a');
    expect(found('x', 'text/plain', 'model=q')).toBe('q');
    const form = '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--b--\r\n';
    expect(found(form, 'multipart/form-data; boundary=b')).toBe('a');
    expect(found(form, 'multipart/form-data; boundary=b', 'model=q')).toBe('q');
  });
});
