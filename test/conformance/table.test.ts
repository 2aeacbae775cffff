import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

const root = new URL('../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, root), 'utf8');

/** The rows a place of llama-swap has, and the cases of the field about streams, requests and disconnects. */
const rows = Array.from({ length: 42 }, (_, index) => `row ${index + 1}`);
const streams = [1, 2, 3, 4, 6, 7, 10, 11, 12, 15, 16];
const requests = [17, 19, 21, 22, 24, 25, 26, 27, 31, 33, 35];
const disconnects = [37, 38, 39, 40, 41, 42, 45, 46, 48, 50];
const cases = [...streams, ...requests, ...disconnects].map((number) => `case ${number}`);

/** Lines of the table: id and what holds it. */
const table = read('docs/architecture/drop-in.md')
  .split('\n')
  .map((line) => /^\| ((?:row|case) \d+) \| .+? \| (.+) \|$/.exec(line))
  .filter((found) => found !== null)
  .map(([, id = '', held = '']) => ({ id, held }));

test('every row and every case stands in the table once', () => {
  expect(table.map(({ id }) => id)).toEqual([...rows, ...cases]);
});

test.each(table.filter(({ held }) => held !== 'not yet'))(
  'the test that holds $id exists: $held',
  ({ held }) => {
    const [, file = '', name = ''] = /^`(test\/[a-z0-9/.-]+\.test\.ts)`: (.+)$/.exec(held) ?? [];
    expect(existsSync(new URL(file, root))).toBe(true);
    const text = read(file).replaceAll("\\'", "'");
    expect(text).toContain(name);
  },
);
