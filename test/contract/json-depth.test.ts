import { expect, test } from '@jest/globals';
import { isTooDeep, MOST_LEVELS } from '../../src/gateway/json-depth.ts';

const lists = (levels: number): unknown =>
  JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown;
const objects = (levels: number): unknown =>
  JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`) as unknown;

test.each([
  ['a plain value', 'text', false],
  ['null', null, false],
  ['as many lists as may be', lists(MOST_LEVELS), false],
  ['one more', lists(MOST_LEVELS + 1), true],
  ['as many objects as may be', objects(MOST_LEVELS), false],
  ['one object more', [objects(MOST_LEVELS)], true],
  ['more than can be written', objects(60_000), true],
  ['a wide one', Array.from({ length: 100_000 }, () => [1]), false],
])('%s', (_what, value, expected) => {
  expect(isTooDeep(value)).toBe(expected);
});
