import { expect, test } from '@jest/globals';
import { JSON_POINTER, valueAt, withValueAt } from '../../src/gateway/json-pointer.ts';

/** The document and the answers of RFC 6901, section 5. */
const DOCUMENT = {
  foo: ['bar', 'baz'],
  '': 0,
  'a/b': 1,
  'c%d': 2,
  'e^f': 3,
  'g|h': 4,
  'i\\j': 5,
  'k"l': 6,
  ' ': 7,
  'm~n': 8,
};

test.each([
  ['', DOCUMENT],
  ['/foo', ['bar', 'baz']],
  ['/foo/0', 'bar'],
  ['/', 0],
  ['/a~1b', 1],
  ['/c%d', 2],
  ['/e^f', 3],
  ['/g|h', 4],
  ['/i\\j', 5],
  ['/k"l', 6],
  ['/ ', 7],
  ['/m~0n', 8],
])('the pointer %j finds what RFC 6901 says', (pointer, value) => {
  expect(JSON_POINTER.test(pointer)).toBe(true);
  expect(valueAt(DOCUMENT, pointer)).toEqual(value);
});

test.each([
  '/bar',
  '/foo/2',
  '/foo/-',
  '/foo/00',
  '/foo/0/x',
  '/foo/length',
  '/toString',
  '/__proto__',
])('the pointer %j finds nothing', (pointer) => {
  expect(valueAt(DOCUMENT, pointer)).toBeUndefined();
});

test.each(['foo', 'foo/bar', '/a~2', '/a~'])('%j is no pointer', (text) => {
  expect(JSON_POINTER.test(text)).toBe(false);
});

test.each([
  ['/a', { a: 9, list: [1, 2] }],
  ['/new', { a: 1, list: [1, 2], new: 9 }],
  ['/list/1', { a: 1, list: [1, 9] }],
  ['/list/-', { a: 1, list: [1, 2, 9] }],
  ['/list/2', { a: 1, list: [1, 2, 9] }],
  ['', 9],
  ['/list/3', undefined],
  ['/missing/a', undefined],
  ['/a/b', undefined],
])('a value put at %j makes %j, and changes nothing in place', (pointer, expected) => {
  const whole = { a: 1, list: [1, 2] };
  expect(withValueAt(whole, pointer, 9)).toEqual(expected);
  expect(whole).toEqual({ a: 1, list: [1, 2] });
});

test('a name that JavaScript gives a meaning is a name like any other', () => {
  const put = withValueAt({}, '/__proto__', { polluted: true }) as Record<string, unknown>;
  expect(Object.keys(put)).toEqual(['__proto__']);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});
