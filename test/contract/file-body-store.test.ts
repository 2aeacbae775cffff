import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { FileBodyStore } from '../../src/adapters/storage/file-body-store.ts';
import { bodyStoreContract } from './body-store.contract.ts';

async function open() {
  const folder = await mkdtemp(path.join(tmpdir(), 'berth-bodies-'));
  const store = await FileBodyStore.open(folder);
  return { folder, store, close: async () => rm(folder, { recursive: true, force: true }) };
}

bodyStoreContract('FileBodyStore', open);

test('folder and files are this user’s alone', async () => {
  const { folder, store, close } = await open();
  const name = `${randomUUID()}.request`;
  await (await store.create(name)).close();
  expect((await stat(path.join(folder, 'bodies'))).mode & 0o777).toBe(0o700);
  expect((await stat(path.join(folder, 'bodies', name))).mode & 0o777).toBe(0o600);
  await close();
});

test('the marker of the other process is no body, and is never swept', async () => {
  const { store, close } = await open();
  await store.writeMarker('seen');
  expect(await store.readMarker()).toBe('seen');
  expect(await store.listJobs(0)).toEqual([]);
  await close();
});

test('a folder that is opened again holds what was promised', async () => {
  const { folder, store, close } = await open();
  const name = `${randomUUID()}.1`;
  const writer = await store.create(name);
  await writer.append(Buffer.from('kept'));
  await writer.sync();
  await writer.close();
  expect(await (await FileBodyStore.open(folder)).size(name)).toBe(4);
  await close();
});
