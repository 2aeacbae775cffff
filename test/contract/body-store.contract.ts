import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { BodyStore } from '../../src/ports/body-store.ts';

/** A store under test, and how to throw it away. */
export interface OpenedStore {
  store: BodyStore;
  close: () => Promise<void>;
}

/** What ingress, worker and scorer rely on in any body store. */
export function bodyStoreContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`${name} as a body store`, () => {
    let store: BodyStore;
    let close: () => Promise<void>;
    let id: string;

    beforeEach(async () => {
      ({ store, close } = await open());
      id = randomUUID();
    });
    afterEach(async () => close());

    const write = async (file: string, pieces: string[], offset?: number): Promise<void> => {
      const writer = await store.create(file, offset);
      for (const piece of pieces) await writer.append(Buffer.from(piece));
      await writer.sync();
      await writer.close();
    };
    const read = async (file: string, from?: number, to?: number): Promise<string> => {
      const pieces: Buffer[] = [];
      for await (const piece of store.read(file, from, to)) pieces.push(piece);
      return Buffer.concat(pieces).toString();
    };

    test('gives back what was appended, in order', async () => {
      await write(`${id}.request`, ['one ', 'two ', 'three']);
      expect(await read(`${id}.request`)).toBe('one two three');
      expect(await store.size(`${id}.request`)).toBe(13);
    });

    test('gives back any range, and nothing of an empty one', async () => {
      await write(`${id}.1`, ['0123456789']);
      expect(await read(`${id}.1`, 3, 6)).toBe('345');
      expect(await read(`${id}.1`, 7)).toBe('789');
      expect(await read(`${id}.1`, 4, 4)).toBe('');
    });

    test('keeps bytes of many pieces and every value', async () => {
      const writer = await store.create(`${id}.1`);
      const piece = Buffer.from(Array.from({ length: 256 }, (_, value) => value));
      for (let count = 0; count < 4096; count += 1) await writer.append(piece);
      await writer.sync();
      await writer.close();
      let bytes = 0;
      for await (const part of store.read(`${id}.1`)) {
        for (const [index, value] of part.entries()) {
          if (value !== (bytes + index) % 256) throw new Error(`byte ${bytes + index} is ${value}`);
        }
        bytes += part.length;
      }
      expect(bytes).toBe(256 * 4096);
    });

    test('writes from an offset, so that numbering is that of the whole body', async () => {
      await write(`${id}.2`, ['tail'], 1000);
      expect(await read(`${id}.2`, 1000)).toBe('tail');
      expect(await store.size(`${id}.2`)).toBe(1004);
    });

    test('lets what was synced be read while more is written', async () => {
      const writer = await store.create(`${id}.1`);
      await writer.append(Buffer.from('first'));
      await writer.sync();
      expect(await read(`${id}.1`)).toBe('first');
      await writer.append(Buffer.from(' second'));
      await writer.sync();
      expect(await read(`${id}.1`, 5)).toBe(' second');
      await writer.close();
      await writer.close();
    });

    test('keeps each attempt apart: a late one cannot write into the next one’s file', async () => {
      const late = await store.create(`${id}.1`);
      await write(`${id}.2`, ['the answer that counts']);
      await late.append(Buffer.from('too late'));
      await late.close();
      expect(await read(`${id}.2`)).toBe('the answer that counts');
    });

    test('replaces a file that is created again', async () => {
      await write(`${id}.request`, ['a long first body']);
      await write(`${id}.request`, ['short']);
      expect(await read(`${id}.request`)).toBe('short');
    });

    test('says that a file is missing', async () => {
      expect(await store.size(`${id}.request`)).toBeUndefined();
      await expect(read(`${id}.request`)).rejects.toThrow();
      await store.remove(`${id}.request`);
      await store.removeJobs([id]);
    });

    test('removes one file alone, and all of a job', async () => {
      const other = randomUUID();
      for (const file of [`${id}.request`, `${id}.1`, `${id}.2`, `${other}.1`])
        await write(file, ['x']);
      await store.remove(`${id}.1`);
      expect(await store.size(`${id}.1`)).toBeUndefined();
      expect(await store.size(`${id}.2`)).toBe(1);
      await store.removeJobs([id]);
      expect(await store.size(`${id}.request`)).toBeUndefined();
      expect(await store.size(`${id}.2`)).toBeUndefined();
      expect(await store.size(`${other}.1`)).toBe(1);
    });

    test('names each job with a file that is old enough, once', async () => {
      for (const file of [`${id}.request`, `${id}.1`]) await write(file, ['x']);
      expect(await store.listJobs(0)).toEqual([id]);
      expect(await store.listJobs(60_000)).toEqual([]);
    });

    test('takes no name that is not of a job', async () => {
      for (const file of ['../escape', `${id}.request/../../x`, `${id}.0`, id, ''])
        await expect(store.create(file)).rejects.toThrow();
    });

    test('tells how much room is left', async () => {
      expect(await store.freeBytes()).toBeGreaterThan(0);
    });
  });
}
