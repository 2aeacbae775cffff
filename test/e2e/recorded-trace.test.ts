import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { connectRedis, whenReady } from '../../src/adapters/redis/connection.ts';
import { poolKeys } from '../../src/adapters/redis/keys.ts';
import { RedisDispatchLog } from '../../src/adapters/redis/redis-dispatch-log.ts';
import { aDispatchRecord, anEndRecord } from '../support/dispatch-records.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

const built = fileURLToPath(new URL('../../dist/src/', import.meta.url));

let server: TestRedis;
let redis: ReturnType<typeof connectRedis>;
let folder: string;
let file: string;

beforeAll(async () => {
  server = await startRedis();
  redis = connectRedis(server.url, 'patient', () => undefined);
  await whenReady(redis, 5000);
  folder = mkdtempSync(path.join(tmpdir(), 'berth-trace-'));
  file = path.join(folder, 'day.jsonl');
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => redis.flushall());

function run(program: string, args: string[], env: Record<string, string> = {}) {
  return spawnSync(process.execPath, [built + program, ...args], {
    env: { PATH: process.env.PATH ?? '', DATA_DIR: folder, ...env },
    encoding: 'utf8',
    timeout: 20_000,
  });
}

/** As many jobs on record as given, more than a page of them if need be. */
async function record(count: number): Promise<void> {
  const log = new RedisDispatchLog({ redis, keys: poolKeys('gpu'), kept: 10_000 });
  for (let index = 0; index < count; index += 1) {
    const id = `job-${index}`;
    const member = index % 2 === 0 ? 'ann' : 'bob';
    log.add(aDispatchRecord(id, { member, base: -100, arrivalMs: index * 1000 }));
    log.add(anEndRecord(id, { usedMs: 12_000, loadMs: 2000 }));
  }
  // The log sends what one turn gave it when that turn is over.
  await new Promise(setImmediate);
  await redis.ping();
}

test('what ran is written into a file and simulated under two configurations side by side', async () => {
  await record(1500);
  const written = run('cli/main.js', ['trace', file], { REDIS_URL: server.url });
  expect([written.status, written.stdout]).toEqual([0, '']);
  expect(written.stderr).toContain(`1500 jobs are in ${file}`);
  expect(written.stderr).toContain('--swap 2');
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  expect(lines).toHaveLength(1500);
  expect(JSON.parse(lines[1] ?? '')).toEqual({
    at: 1,
    seconds: 10,
    member: 'bob',
    tier: 'free',
    priority: -100,
    model: 'model',
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const simulated = run('simulate/main.js', [
    '--trace',
    file,
    '--swap',
    '2',
    '--vs',
    'aging.clock=job',
  ]);
  expect(simulated.stderr).toBe('');
  expect(simulated.stdout).toContain('left: as configured; right: aging.clock=job');
  expect(simulated.stdout).toMatch(/^batch bob +750( +\S+){6} +750( +\S+){6}$/m);
});

test('without REDIS_URL the embedded Redis of DATA_DIR is read', async () => {
  await record(2);
  symlinkSync(server.socket, path.join(folder, 'redis.sock'));
  const { status, stderr } = run('cli/main.js', ['trace', file]);
  rmSync(path.join(folder, 'redis.sock'));
  expect([status, stderr.includes('2 jobs are in')]).toEqual([0, true]);
});

test('what is in the way is one line', () => {
  const nothing = run('cli/main.js', ['trace', file], { REDIS_URL: server.url });
  expect([nothing.status, nothing.stderr]).toEqual([1, 'berth: no run of pool gpu is on record\n']);
  const unset = run('cli/main.js', ['trace', file]);
  expect(unset.status).toBe(1);
  expect(unset.stderr).toMatch(/^berth: REDIS_URL is not set and no embedded Redis runs in .*\n$/);
  const away = run('cli/main.js', ['trace', file], { REDIS_URL: 'redis://:secret@127.0.0.1:1' });
  expect(away.status).toBe(1);
  expect(away.stderr).toMatch(/^berth: the records cannot be read: .*\n$/);
  expect(away.stderr).not.toContain('secret');
});
