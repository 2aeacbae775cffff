import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import { RedisDispatchHistory } from '../../src/adapters/redis/redis-dispatch-history.ts';
import { RedisDispatchLog } from '../../src/adapters/redis/redis-dispatch-log.ts';
import type { DispatchRecord, EndRecord } from '../../src/ports/dispatch-log.ts';
import { aDispatchRecord, anEndRecord } from '../support/dispatch-records.ts';
import { eventually } from '../support/eventually.ts';
import { queueFixture } from '../support/queue-fixture.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let history: RedisDispatchHistory;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  history = new RedisDispatchHistory(fixture.admin, fixture.keys);
});
afterEach(async () => fixture.close());

type AnyRecord = DispatchRecord | EndRecord;

const starts = (id: string, atMs: number): AnyRecord => ({ ...aDispatchRecord(id), atMs });
const ends = (id: string, atMs: number): AnyRecord => anEndRecord(id, { atMs });

/** Puts a record where the log would have put it, `lateMs` after its moment. */
async function logged(record: AnyRecord, lateMs = 0): Promise<void> {
  const id = `${record.atMs + lateMs}-*`;
  await fixture.admin.xadd(fixture.keys.dispatches, id, 'r', JSON.stringify(record));
}

async function between(fromMs: number, toMs: number): Promise<string[]> {
  const records: AnyRecord[] = [];
  for await (const page of history.between(fromMs, toMs)) records.push(...page);
  return records.map((record) =>
    record.kind === 'dispatch' ? `${record.winner.id} starts` : `${record.id} ${record.kind}`,
  );
}

test('what the log wrote is read, oldest first', async () => {
  const log = new RedisDispatchLog({ redis: fixture.admin, keys: fixture.keys, kept: 100 });
  const [seconds] = await fixture.admin.time();
  const nowMs = Number(seconds) * 1000;
  for (const record of [starts('a', nowMs), ends('a', nowMs + 1), starts('b', nowMs + 2)])
    log.add(record);
  await eventually(async () => (await between(nowMs, nowMs + 2)).length === 3, {
    what: 'all records',
  });
  expect(await between(nowMs, nowMs + 2)).toEqual(['a starts', 'a end', 'b starts']);
});

test('a time begins with the run that was going on, and ends with its last moment', async () => {
  await logged(starts('old', 1000));
  await logged(ends('old', 2000));
  await logged(starts('a', 2001), 3);
  await logged(ends('a', 5000), 3);
  await logged(starts('b', 5001), 3);
  await logged(ends('b', 9000), 3);
  expect(await between(3000, 5001)).toEqual(['a starts', 'a end', 'b starts']);
  // Its dispatch came into the stream after the beginning, though it was before.
  expect(await between(2002, 4000)).toEqual(['old starts', 'old end', 'a starts']);
  expect(await between(9500, 9600)).toEqual(['b starts', 'b end']);
  expect(await between(0, 100)).toEqual([]);
});

test('more than a page is read to its end', async () => {
  const pipeline = fixture.admin.pipeline();
  for (let at = 1; at <= 1700; at += 1)
    pipeline.xadd(fixture.keys.dispatches, `${at}-1`, 'r', JSON.stringify(starts(`j${at}`, at)));
  await pipeline.exec();
  const all = await between(1, 1700);
  expect([all.length, all[0], all.at(-1)]).toEqual([1700, 'j1 starts', 'j1700 starts']);
});

test('it knows since when dispatches are on record', async () => {
  expect(await history.since()).toBe(0);
  for (const at of [1000, 2000, 3000]) await logged(starts('a', at));
  expect(await history.since()).toBe(0);
  await fixture.admin.xtrim(fixture.keys.dispatches, 'MAXLEN', 2);
  expect(await history.since()).toBe(2000);
});

test('Redis that is away is told as such', async () => {
  const away = connectRedis('redis://127.0.0.1:1', 'prompt', () => undefined);
  const none = new RedisDispatchHistory(away, fixture.keys);
  await expect(none.since()).rejects.toMatchObject({ code: 'redis_unavailable' });
  away.disconnect();
});
