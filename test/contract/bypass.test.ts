import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from '@jest/globals';
import { GatewayError } from '../../src/errors.ts';
import { Bypass } from '../../src/ingress/routes/bypass.ts';

const aliases: Readonly<Record<string, string>> = { short: 'long', other: 'long' };
const catalogue = {
  resolve: (id: string) => aliases[id] ?? id,
  isPeer: (id: string) => id.startsWith('peer/'),
};

/** As much of a response as waiting looks at. */
class Client extends EventEmitter {
  destroyed = false;
  leave(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

function bypassOf(concurrency: number, lineLength?: number) {
  const options = lineLength === undefined ? {} : { lineLength };
  const bypass = new Bypass({ catalogue, models: ['short'], concurrency, ...options });
  const began: string[] = [];
  const ends = new Map<string, () => void>();
  const ask = (name: string, client = new Client()) => ({
    client,
    /** What became of it: done, or the code it was refused with. */
    fate: bypass
      .inTurn(client as unknown as ServerResponse, async () => {
        began.push(name);
        await new Promise<void>((resolve) => ends.set(name, resolve));
      })
      .then(
        () => 'done',
        (error: unknown) => (error instanceof GatewayError ? error.code : String(error)),
      ),
  });
  return { bypass, began, ask, end: (name: string) => ends.get(name)?.() };
}

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('covers models of peers, and configured ones by any of their names', () => {
  const { bypass } = bypassOf(1);
  const ids = ['peer/x', 'short', 'long', 'other', 'short2', ''];
  expect(ids.filter((id) => bypass.covers(id))).toEqual(['peer/x', 'short', 'long', 'other']);
});

describe('the line', () => {
  test('lets so many through at once, the others in the order they came', async () => {
    const { began, ask, end } = bypassOf(2);
    const fates = ['a', 'b', 'c', 'd'].map((name) => ask(name).fate);
    await settle();
    expect(began).toEqual(['a', 'b']);
    end('b');
    await settle();
    expect(began).toEqual(['a', 'b', 'c']);
    for (const name of ['a', 'c']) end(name);
    await settle();
    end('d');
    expect(await Promise.all(fates)).toEqual(['done', 'done', 'done', 'done']);
  });

  test('gives the place on when the work fails', async () => {
    const { bypass, began, ask } = bypassOf(1);
    const failing = bypass.inTurn(new Client() as unknown as ServerResponse, () =>
      Promise.reject(new Error('no')),
    );
    ask('next');
    await expect(failing).rejects.toThrow('no');
    await settle();
    expect(began).toEqual(['next']);
  });

  test('forgets a client that leaves, and one that had left before', async () => {
    const { began, ask, end } = bypassOf(1);
    ask('a');
    const leaver = ask('b');
    const last = ask('c');
    const gone = new Client();
    gone.destroyed = true;
    expect(await ask('gone', gone).fate).toBe('client_closed');
    leaver.client.leave();
    expect(await leaver.fate).toBe('client_closed');
    end('a');
    await settle();
    expect(began).toEqual(['a', 'c']);
    expect([leaver.client, last.client].map((client) => client.listenerCount('close'))).toEqual([
      0, 0,
    ]);
  });

  test('refuses more than it holds, and takes again when there is room', async () => {
    const { ask, end } = bypassOf(1, 1);
    ask('a');
    const waiting = ask('b');
    expect(await ask('c').fate).toBe('queue_full');
    waiting.client.leave();
    const again = ask('d');
    end('a');
    await settle();
    end('d');
    expect(await again.fate).toBe('done');
  });

  test('is sent away at the end, what runs goes on', async () => {
    const { bypass, ask, end } = bypassOf(1);
    const running = ask('a');
    const waiting = ask('b');
    await settle();
    bypass.close();
    expect([await waiting.fate, await ask('c').fate]).toEqual(['shutting_down', 'shutting_down']);
    end('a');
    expect(await running.fate).toBe('done');
  });
});
