import { beforeEach, expect, test } from '@jest/globals';
import { HandOver } from '../../src/adapters/redis/hand-over.ts';

let told: string[];
let errors: string[];
let handOver: HandOver;
const put = (name: string): void => handOver.after(() => void told.push(name));

beforeEach(() => {
  told = [];
  errors = [];
  handOver = new HandOver((error) => void errors.push(error.message));
});

test('work waits from the end of a run until the next job is under way, then runs in its order', async () => {
  put('before');
  expect(told).toEqual(['before']);
  handOver.begin();
  put('books');
  put('report');
  handOver.handedOut();
  put('record');
  expect(told).toEqual(['before']);
  await handOver.over();
  expect(told).toEqual(['before', 'books', 'report', 'record']);
  put('after');
  expect(told.at(-1)).toBe('after');
});

test('a run that ends while work still waits has it done first', () => {
  handOver.handedOut();
  put('books of the run before');
  handOver.begin();
  expect(told).toEqual(['books of the run before']);
  handOver.flush();
});

test('work does not wait for a reply that does not come', async () => {
  handOver.begin();
  put('books');
  await handOver.over();
  expect(told).toEqual(['books']);
});

test('work that throws is told, and the rest is done', () => {
  handOver.begin();
  handOver.after(() => {
    throw new Error('broken');
  });
  put('rest');
  handOver.flush();
  expect([errors, told]).toEqual([['broken'], ['rest']]);
});
