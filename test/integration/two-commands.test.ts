import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';

const script = (name: string): string =>
  fileURLToPath(new URL(`../../scripts/${name}`, import.meta.url));

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'berth-path-'));
  symlinkSync(process.execPath, path.join(folder, 'node'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a script with nothing on PATH but node; its data would go to the test's folder. */
function runAlone(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { status, stdout, stderr } = spawnSync('node', args, {
    encoding: 'utf8',
    env: { PATH: folder, DATA_DIR: path.join(folder, 'data'), ...env },
  });
  return { status, stdout, stderr };
}

test('without a redis-server and a way to install one, one line says how for each system', () => {
  const { status, stdout, stderr } = runAlone([script('start.mjs')]);
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr.split('\n')).toHaveLength(2);
  for (const command of [
    'apt: sudo apt-get install -y redis-server',
    'dnf: sudo dnf install -y redis',
    'apk: sudo apk add redis',
    'brew: brew install redis',
    'docker: docker run -d --name berth-redis -p 127.0.0.1:6379:6379 redis:7',
  ]) {
    expect(stderr).toContain(command);
  }
});

test('with a Redis of your own no redis-server is asked for', () => {
  const env = { REDIS_URL: 'redis://127.0.0.1:6379', PORT: 'none' };
  const { status, stderr } = runAlone([script('start.mjs')], env);
  expect(status).toBe(1);
  expect(stderr).toBe(
    'berth: configuration: PORT: "none" will not do: a whole number from 0 to 65535 is needed\n',
  );
});

test('an older Node is told which one is needed, before anything else', () => {
  const older =
    'data:text/javascript,' +
    encodeURIComponent(
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.18.1' } })",
    );
  const { status, stdout, stderr } = runAlone(['--import', older, script('start.mjs')]);
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toBe('berth: Node 20.19 or newer is needed, this is 20.18.1\n');
});

test('whatever keeps the tests from running, the last line counts it', () => {
  const { status, stdout, stderr } = runAlone([script('test.mjs'), 'unheard-of']);
  expect([status, stdout]).toEqual([1, '0 passed, 1 failed\n']);
  expect(stderr).toMatch(/^berth: there is no layer unheard-of; there are static, .*nightly\n$/);
  expect(runAlone([script('test.mjs')]).stdout).toBe('0 passed, 1 failed\n');
});
