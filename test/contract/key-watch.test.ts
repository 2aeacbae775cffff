import { createHash } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { KeyRing } from '../../src/ingress/key-ring.ts';
import type { Logger } from '../../src/ports/logger.ts';
import { watchKeys } from '../../src/processes/key-watch.ts';
import type { KeyWatch } from '../../src/processes/key-watch.ts';
import { eventually } from '../support/eventually.ts';

let folder: string;
let file: string;
let lines: [level: string, message: string, fields: unknown][];
let ring: KeyRing;
let watch: KeyWatch;

const config = (...names: string[]): string =>
  JSON.stringify({
    keys: names.map((name) => ({
      name,
      sha256: createHash('sha256').update(name).digest('hex'),
    })),
  });
const knows = (name: string): boolean => ring.find(Buffer.from(name)) !== undefined;
const count = (message: string): number => lines.filter((line) => line[1] === message).length;
const until = async (look: () => boolean, what: string): Promise<unknown> =>
  eventually(look, { what });

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'berth-keys-'));
  file = path.join(folder, 'berth.json');
  writeFileSync(file, config('old'));
  lines = [];
  ring = new KeyRing([]);
  const write =
    (level: string): Logger['info'] =>
    (fields, message) =>
      void lines.push([level, message, fields]);
  const log: Logger = {
    error: write('error'),
    warn: write('warn'),
    info: write('info'),
    debug: write('debug'),
    child: () => log,
  };
  watch = watchKeys({ path: file, keys: [], ring, log, lookMs: 10 });
});
afterEach(() => {
  watch.end();
  rmSync(folder, { recursive: true });
});

test('keys are taken from a file that was written over or put in the place of the old one', async () => {
  await until(() => knows('old'), 'the first key');
  writeFileSync(file, config('old', 'new'));
  await until(() => knows('new'), 'the second key');
  const beside = path.join(folder, 'beside.json');
  writeFileSync(beside, config('new'));
  renameSync(beside, file);
  await until(() => !knows('old'), 'the first key to be forgotten');
  expect(knows('new')).toBe(true);
});

test('a file that is caught half-written is looked at again before it is called broken', async () => {
  watch.end();
  await watch.look();
  const text = config('next');
  for (let length = 0; length < text.length; length += 16) {
    writeFileSync(file, text.slice(0, length));
    await watch.look();
  }
  writeFileSync(file, text);
  await watch.look();
  expect([knows('next'), count('keys.unreadable')]).toEqual([true, 0]);
  writeFileSync(file, text.slice(0, -1));
  await watch.look();
  expect(count('keys.unreadable')).toBe(0);
  await watch.look();
  expect(count('keys.unreadable')).toBe(1);
});

test('a broken or missing file keeps the keys and is told once', async () => {
  await until(() => knows('old'), 'the first key');
  writeFileSync(file, `${config('next').slice(0, -2)} SECRETWORD`);
  await until(() => count('keys.unreadable') === 1, 'the broken file to be told');
  rmSync(file);
  await until(() => count('keys.unreadable') === 2, 'the missing file to be told');
  expect([knows('old'), knows('next')]).toEqual([true, false]);
  writeFileSync(file, config('next'));
  await until(() => knows('next'), 'the mended file to count');
  expect(count('keys.unreadable')).toBe(2);
  expect(JSON.stringify(lines)).not.toMatch(/SECRETWORD|[0-9a-f]{64}/);
});

test('a fault anywhere in the file keeps the keys; other changes of it are no news', async () => {
  await until(() => knows('old'), 'the first key');
  writeFileSync(file, config('next').replace('{', '{"bandz":{},'));
  await until(() => count('keys.unreadable') === 1, 'the fault to be told');
  expect(knows('next')).toBe(false);
  writeFileSync(file, config('old').replace('{', '{"xPriorityUnit":20,'));
  writeFileSync(file, config('next'));
  await until(() => knows('next'), 'the next key');
  expect(count('keys.changed')).toBe(2);
});

test('the last key that is taken away is gone', async () => {
  await until(() => knows('old'), 'the first key');
  writeFileSync(file, config());
  await until(() => ring.isEmpty, 'the ring to be empty');
  expect(lines.at(-1)).toEqual(['warn', 'keys.changed', { names: [] }]);
});
