import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'berth-command-'));
  file = path.join(folder, 'berth.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

function berth(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return berthWith({ BERTH_CONFIG: file }, ...args);
}
function berthWith(env: Record<string, string>, ...args: string[]) {
  return spawnSync(process.execPath, [path.join(root, 'dist/src/cli/main.js'), ...args], {
    env: { PATH: process.env.PATH ?? '', ...env },
    encoding: 'utf8',
  });
}
const configured = () => loadConfig({ BERTH_CONFIG: file }).keys;

test('a key is made, shown once, listed without a secret, and removed', () => {
  const made = berth('keys', 'add', 'mort', '--may-assert', 'member,tier', '--tier', 'pro');
  expect(made.status).toBe(0);
  expect(made.stdout).toMatch(/^berth_[A-Za-z0-9_-]{43}\n$/);
  const key = made.stdout.trim();
  const sha256 = createHash('sha256').update(key).digest('hex');
  expect(readFileSync(file, 'utf8')).toContain(sha256);
  expect(readFileSync(file, 'utf8') + made.stderr).not.toContain(key);
  expect(configured()).toMatchObject([
    {
      name: 'mort',
      member: 'mort',
      tier: 'pro',
      sha256,
      mayAssert: ['member', 'tier'],
      maxPriority: null,
    },
  ]);
  const listed = berth('keys', 'list');
  expect(listed.stdout).toMatch(/^NAME .*\nmort +mort +pro +0 +none +member,tier +no\n$/);
  expect(listed.stdout).not.toContain(sha256);
  expect(berth('keys', 'remove', 'mort').status).toBe(0);
  expect(configured()).toEqual([]);
});

test('every setting reaches the file', () => {
  berth('keys', 'add', 'a', '--member', 'ann', '--default-priority', '-100', '--max-priority', '0');
  berth('keys', 'add', 'b', '--max-priority', 'none', '--admin');
  expect(configured()).toMatchObject([
    { member: 'ann', defaultPriority: -100, maxPriority: 0, isAdmin: false },
    { member: 'b', maxPriority: null, isAdmin: true },
  ]);
});

test('what is refused changes nothing and says why in one line', () => {
  berth('keys', 'add', 'ann');
  const before = readFileSync(file, 'utf8');
  for (const [args, why] of [
    [['add', 'ann'], 'there is a key called ann already'],
    [['add', 'bob', '--tier', 'gold'], 'no tier is called gold'],
    [['add', 'bob', '--default-priority', '101'], '101 is above its maxPriority'],
    [['add', 'bob', '--default-priority', '1e1'], 'a whole number'],
    [['add', 'bob', '--may-assert', 'everything'], 'member, tier or member,tier'],
    [['add', ''], 'keys.1.name'],
    [['remove', 'bob'], 'there is no key called bob'],
  ] as const) {
    const { status, stdout, stderr } = berth('keys', ...args);
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain(why);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  }
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(readdirSync(folder)).toEqual(['berth.json']);
});

test('without BERTH_CONFIG it says how to set it', () => {
  const { status, stderr } = berthWith({}, 'keys', 'add', 'ann');
  expect([status, stderr.includes('BERTH_CONFIG is not set')]).toEqual([1, true]);
});

test('a new file is its owner’s alone; an old one keeps its mode, its link and its other settings', () => {
  berth('keys', 'add', 'ann');
  expect(statSync(file).mode & 0o777).toBe(0o600);
  writeFileSync(file, '{"caps": {"waiting": 7}, "keys": []}');
  chmodSync(file, 0o640);
  const link = path.join(folder, 'link.json');
  symlinkSync(file, link);
  expect(berthWith({ BERTH_CONFIG: link }, 'keys', 'add', 'bob').status).toBe(0);
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
    caps: { waiting: 7 },
    keys: [{ name: 'bob' }],
  });
});

test('a broken file is left as it is', () => {
  writeFileSync(file, '{"keys": [SECRETWORD');
  const { status, stderr } = berth('keys', 'add', 'ann');
  expect(status).toBe(1);
  expect(stderr).toContain('is not JSON: line 1, column 11');
  expect(stderr).not.toContain('SECRETWORD');
  expect(readFileSync(file, 'utf8')).toBe('{"keys": [SECRETWORD');
});
