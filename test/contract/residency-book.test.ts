import { beforeEach, describe, expect, test } from '@jest/globals';
import { ResidencyBook } from '../../src/adapters/upstream/residency-book.ts';

let book: ResidencyBook;
beforeEach(() => {
  book = new ResidencyBook();
});

const processes = (states: Record<string, string>) =>
  Object.entries(states).map(([model, state]) => ({ model, state }));
const read = (states: Record<string, string>, atMs: number) => book.read(processes(states), atMs);
const models = () => book.residents().models;

describe('which models are resident', () => {
  test('nothing is known before the first reading', () => {
    expect(book.residents()).toEqual({ isKnown: false, models: [] });
  });

  test('none loaded is known, and is not the same as unknown', () => {
    read({ a: 'stopped' }, 0);
    expect(book.residents()).toEqual({ isKnown: true, models: [] });
  });

  test('starting counts, stopping does not', () => {
    read({ a: 'stopping', b: 'starting' }, 0);
    expect(models()).toEqual(['b']);
  });

  test('of several, the last used comes first; a load is a use', () => {
    read({ a: 'ready', b: 'ready' }, 0);
    expect(models()).toEqual(['a', 'b']);
    book.dispatched('b', 1);
    expect(models()).toEqual(['b', 'a']);
    read({ a: 'ready', b: 'ready', c: 'starting' }, 2);
    expect(models()).toEqual(['c', 'b', 'a']);
    book.dispatched('a', 3);
    expect(models()).toEqual(['a', 'c', 'b']);
  });

  test('after the readings end, the last dispatched model is assumed', () => {
    read({ a: 'ready' }, 0);
    book.dispatched('b', 1);
    book.lost();
    expect(book.residents()).toEqual({ isKnown: false, models: ['b'] });
    read({ a: 'ready' }, 5000);
    expect(book.residents()).toEqual({ isKnown: true, models: ['a'] });
  });
});

describe('a dispatched model that no reading shows', () => {
  beforeEach(() => {
    read({ a: 'ready' }, 0);
    book.dispatched('b', 1000);
  });

  test('is believed to come', () => {
    read({ a: 'ready' }, 1100);
    expect(models()).toEqual(['b', 'a']);
    expect(book.isSettling).toBe(true);
  });

  test('is believed as long as another one is still stopping', () => {
    read({ a: 'stopping' }, 9000);
    expect(models()).toEqual(['b']);
  });

  test('is no longer believed after two seconds without it', () => {
    read({ a: 'ready' }, 3001);
    expect(models()).toEqual(['a']);
    expect(book.isSettling).toBe(false);
  });

  test('is gone when it was seen and went', () => {
    read({ b: 'ready' }, 1100);
    read({}, 1200);
    expect(models()).toEqual([]);
  });
});

describe('a swap', () => {
  test('takes from starting to ready, and is told once', () => {
    read({ a: 'ready' }, 0);
    expect(read({ a: 'stopping', b: 'starting' }, 100)).toEqual([]);
    expect(read({ b: 'starting' }, 150)).toEqual([]);
    expect(read({ b: 'ready' }, 700)).toEqual([{ model: 'b', swappedMs: 600 }]);
    expect(read({ b: 'ready' }, 800)).toEqual([]);
  });

  test('whose start nobody saw began after its dispatch', () => {
    read({ a: 'ready' }, 0);
    book.dispatched('b', 1000);
    expect(read({ b: 'ready' }, 3000)).toEqual([{ model: 'b', swappedMs: 2000 }]);
  });

  test('that others caused between two readings took at most the time between them', () => {
    read({ a: 'ready' }, 1000);
    expect(read({ b: 'ready' }, 4000)).toEqual([{ model: 'b', swappedMs: 3000 }]);
  });

  test('is not made up of the first reading, at the start or after an outage', () => {
    expect(read({ a: 'ready' }, 0)).toEqual([]);
    book.lost();
    expect(read({ b: 'ready' }, 10)).toEqual([]);
  });

  test('that failed is none, and the next one is timed from its own start', () => {
    read({}, 0);
    read({ a: 'starting' }, 100);
    read({}, 200);
    read({ a: 'starting' }, 1000);
    expect(read({ a: 'ready' }, 1400)).toEqual([{ model: 'a', swappedMs: 400 }]);
  });
});
