import { describe, expect, jest, test } from '@jest/globals';
import { Pulse } from '../../src/ingress/pulse.ts';
import { PublishedPlan } from '../../src/ingress/published-plan.ts';
import { eventually } from '../support/eventually.ts';

const eta = { p50: 1, p90: 2 };
const plan = JSON.stringify({
  running: { id: 'r', eta_seconds: eta },
  waiting: [
    { id: 'a', position: 1, eta_seconds: eta },
    { id: null, position: 2, eta_seconds: eta },
  ],
});

describe('places from the published plan', () => {
  test('are read once for all who ask at about the same time', async () => {
    let reads = 0;
    const positions = new PublishedPlan(async () => {
      reads += 1;
      return Promise.resolve(plan);
    });
    const places = await Promise.all(['a', 'r', 'b'].map(async (id) => positions.of(id)));
    expect(places).toEqual([{ position: 1, eta }, { position: undefined, eta }, undefined]);
    expect(await positions.view()).toEqual(JSON.parse(plan));
    expect(reads).toBe(1);
  });

  test.each([
    ['is no plan', async () => Promise.resolve(undefined)],
    ['is no Redis', async () => Promise.reject(new Error('gone'))],
    ['is no JSON', async () => Promise.resolve('{')],
  ])('are unknown while there %s', async (_why, read) => {
    expect(await new PublishedPlan(read).of('a')).toBeUndefined();
    expect(await new PublishedPlan(read).view()).toBeUndefined();
  });

  test('are read again when they have lasted', async () => {
    let json = plan;
    const positions = new PublishedPlan(async () => Promise.resolve(json), 0);
    expect(await positions.of('a')).toEqual({ position: 1, eta });
    json = plan.replace('"position":1', '"position":4');
    await eventually(async () => (await positions.of('a'))?.position === 4, {
      what: 'the new place',
    });
    expect(await positions.of('r')).toEqual({ position: undefined, eta });
  });
});

test('a pulse beats after the first silence, then at its own pace, and anew after something was sent', () => {
  jest.useFakeTimers();
  try {
    let beats = 0;
    const pulse = new Pulse({ afterMs: 20_000, everyMs: 15_000 }, () => (beats += 1));
    const after = (ms: number): number => {
      jest.advanceTimersByTime(ms);
      return beats;
    };
    expect([after(19_999), after(1), after(14_999), after(1)]).toEqual([0, 1, 1, 2]);
    pulse.touch();
    expect([after(19_999), after(1)]).toEqual([2, 3]);
    pulse.touch();
    after(10_000);
    pulse.touch();
    expect([after(19_999), after(1)]).toEqual([3, 4]);
    pulse.stop();
    pulse.touch();
    expect(after(60_000)).toBe(4);
  } finally {
    jest.useRealTimers();
  }
});
