import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { Redis } from 'ioredis';
import {
  clearRedisPlace,
  embeddedRedisSpec,
  prepareRedisPlace,
  quarterOfMemory,
} from '../../src/supervise/embedded-redis.ts';
import { KeptProcess } from '../../src/supervise/kept-process.ts';
import { RedisReplyError, redisCommand } from '../../src/supervise/redis-command.ts';

let dataDir = '';
let kept: KeptProcess[] = [];
let clients: Redis[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'berth-data-'));
});

afterEach(async () => {
  for (const client of clients) client.disconnect();
  for (const one of kept) one.kill();
  await Promise.all(kept.map(({ over }) => over));
  kept = [];
  clients = [];
  await rm(dataDir, { recursive: true, force: true });
});

async function startEmbedded(fsync: 'always' | 'everysec' = 'always') {
  const place = prepareRedisPlace(dataDir);
  const spec = embeddedRedisSpec(place, { fsync, maxMemoryBytes: quarterOfMemory() });
  const pids: number[] = [];
  const redis = new KeptProcess(spec, {
    spawned: (_, pid) => pids.push(pid),
    listening: () => undefined,
    died: () => undefined,
    gaveUp: () => undefined,
  });
  kept.push(redis);
  redis.start();
  await redis.ready;
  const client = new Redis({ path: place.socket });
  clients.push(client);
  return { place, redis, client, pids };
}

async function setting(client: Redis, name: string): Promise<string | undefined> {
  const [, value] = await client.config('GET', name);
  return value;
}

test('it keeps every write on disk, refuses rather than forgets, and takes a quarter of the memory', async () => {
  const { client } = await startEmbedded();
  expect(await setting(client, 'appendonly')).toBe('yes');
  expect(await setting(client, 'appendfsync')).toBe('always');
  expect(await setting(client, 'save')).toBe('');
  expect(await setting(client, 'maxmemory-policy')).toBe('noeviction');
  expect(await setting(client, 'maxmemory')).toBe(String(quarterOfMemory()));
  expect(quarterOfMemory()).toBeGreaterThan(0);
  expect(quarterOfMemory()).toBeLessThanOrEqual(totalmem() / 4);
});

test('it flushes once a second where that is asked for', async () => {
  const { client } = await startEmbedded('everysec');
  expect(await setting(client, 'appendfsync')).toBe('everysec');
});

test('it listens on its socket alone, which is for its owner alone', async () => {
  const { client, place } = await startEmbedded();
  expect(await setting(client, 'port')).toBe('0');
  expect((await stat(place.socket)).mode & 0o777).toBe(0o700);
  expect((await stat(place.folder)).mode & 0o777).toBe(0o700);
  expect(place.socket.startsWith(dataDir)).toBe(true);
});

test('its data lies in DATA_DIR/redis and outlives a kill', async () => {
  const first = await startEmbedded();
  await first.client.set('kept', 'yes');
  first.redis.kill();
  await first.redis.over;
  const second = await startEmbedded();
  expect(await second.client.get('kept')).toBe('yes');
  expect((await stat(path.join(dataDir, 'redis', 'redis.log'))).isFile()).toBe(true);
});

test('it is ready only when it has loaded what it had', async () => {
  const first = await startEmbedded();
  // While it loads, Redis looks at its sockets once in 1024 commands.
  const writes = first.client.pipeline();
  for (let index = 0; index < 4096; index += 1) writes.set(`key ${index}`, 'value');
  await writes.exec();
  first.redis.kill();
  await first.redis.over;
  const place = prepareRedisPlace(dataDir);
  const spec = embeddedRedisSpec(place, { fsync: 'always', maxMemoryBytes: quarterOfMemory() });
  const slow = new KeptProcess(
    { ...spec, args: () => [...spec.args(), '--key-load-delay', '200'] },
    {
      spawned: () => undefined,
      listening: () => undefined,
      died: () => undefined,
      gaveUp: () => undefined,
    },
  );
  kept.push(slow);
  slow.start();
  await slow.ready;
  expect(await redisCommand(place.socket, ['DBSIZE'], 1000)).toBe('4096');
});

test('a DATA_DIR path of 101 bytes puts the socket into a private folder under the temp dir', async () => {
  dataDir = path.join(dataDir, 'd'.repeat(101));
  await mkdir(dataDir);
  const { place, client } = await startEmbedded();
  expect(await client.ping()).toBe('PONG');
  expect(Buffer.byteLength(place.socket)).toBeLessThanOrEqual(100);
  expect(place.socketFolder).toBe(path.dirname(place.socket));
  expect((await stat(path.dirname(place.socket))).mode & 0o777).toBe(0o700);
  clearRedisPlace(place);
  await expect(stat(path.dirname(place.socket))).rejects.toThrow('ENOENT');
});

test('a path with blanks and letters beyond ASCII is no trouble', async () => {
  dataDir = path.join(dataDir, 'my däta "x"');
  await mkdir(dataDir);
  const { client } = await startEmbedded();
  expect(await client.ping()).toBe('PONG');
});

test('the small client tells error replies from values and gives up in time', async () => {
  const { place, pids } = await startEmbedded();
  const ask = (...command: string[]) => redisCommand(place.socket, command, 300);
  expect(await ask('SET', 'key', 'a\r\nb')).toBe('OK');
  expect(await ask('GET', 'key')).toBe('a\r\nb');
  expect(await ask('GET', 'none')).toBe('');
  expect(await ask('STRLEN', 'key')).toBe('4');
  await expect(ask('INCR', 'key')).rejects.toThrow(RedisReplyError);
  process.kill(pids[0]!, 'SIGSTOP');
  await expect(ask('PING')).rejects.toThrow('did not answer PING within 300 ms');
});
