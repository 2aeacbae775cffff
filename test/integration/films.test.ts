import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { QueueCare } from '../../src/adapters/redis/queue-care.ts';
import { readEndedJob } from '../../src/adapters/redis/webhook-outbox.ts';
import { RedisJobRecords } from '../../src/adapters/redis/redis-job-records.ts';
import { RedisClock } from '../../src/adapters/redis/redis-clock.ts';
import { fileName, storeBody } from '../../src/gateway/film-template.ts';
import type { ShotTemplate } from '../../src/gateway/film-template.ts';
import type { ClaimedJob, RunJob } from '../../src/ports/job-queue.ts';
import { Random } from '../../src/simulate/random.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { aTemplate, filmFixture } from '../support/film-fixture.ts';
import { aNewJob, queueFixture } from '../support/queue-fixture.ts';
import { RunGate } from '../support/run-gate.ts';
import { startRedis } from '../support/redis-server.ts';
import type { TestRedis } from '../support/redis-server.ts';

/** A film that is killed is killed once for so many shots. */
const SHOTS_A_KILL = 20;

let redis: TestRedis;
let fixture: Awaited<ReturnType<typeof queueFixture>>;
let cinema: ReturnType<typeof filmFixture>;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(async () => redis.stop());
beforeEach(async () => {
  fixture = await queueFixture(redis.url);
  cinema = filmFixture(fixture);
});
afterEach(async () => fixture.close());

interface Body {
  shot: number;
  seed?: unknown;
}

const bodyOf = (job: ClaimedJob): Body => JSON.parse(String(job.body)) as Body;

/** Answers each shot with its number; `ran` gets the bodies. */
const answering =
  (ran: Body[], fails: (body: Body) => boolean = () => false): RunJob =>
  async (job, log) => {
    const body = bodyOf(job);
    ran.push(body);
    await Promise.resolve();
    if (fails(body))
      return { kind: 'failed', code: 'model_server_truncated', message: 'it broke off' };
    log.head({ status: 200, headers: [] });
    await log.write(Buffer.from(JSON.stringify({ data: [{ seed: body.shot * 10 }] })));
    return { kind: 'completed' };
  };

/** A worker whose runs are held, once their shot has begun, until the gate is opened. */
async function gatedWorker(ran: Body[]): Promise<RunGate> {
  const gate = new RunGate();
  gate.shut();
  const run = answering(ran);
  await fixture.startWorker(async (job, log, signal) => {
    const result = run(job, log, signal);
    await gate.pass();
    return result;
  });
  return gate;
}

const shots = (count: number): ShotTemplate[] =>
  Array.from({ length: count }, (_, index) => aTemplate({ shot: index + 1 }));

const chained = (count: number): ShotTemplate[] =>
  Array.from({ length: count }, (_, index) =>
    aTemplate({ shot: index + 1 }, index === 0 ? [] : [{ from: '/data/0/seed', to: '/seed' }]),
  );

const numbers = (ran: readonly Body[]): number[] => ran.map(({ shot }) => shot);
const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

async function state(film: string, wanted: string): Promise<void> {
  await eventually(async () => (await cinema.films.read(film))?.state === wanted, {
    timeoutMs: 20_000,
    what: `the film to be ${wanted}`,
  });
}

test('a film of a thousand shots runs each once, in order, and each takes its value from the one before', async () => {
  const ran: Body[] = [];
  const seen = await fixture.startWorker(answering(ran));
  const film = await cinema.make(chained(1000));
  await state(film, 'completed');
  expect(numbers(ran)).toEqual(upTo(1000));
  expect(ran.slice(1).map(({ seed }) => seed)).toEqual(upTo(999).map((shot) => shot * 10));
  expect(seen.errors).toEqual([]);
  const record = await cinema.films.read(film);
  expect(record).toMatchObject({ done: 1000, total: 1000, jobId: null });
}, 60_000);

test('the next shot goes at once where it is its turn, and no look ever finds two or none', async () => {
  const ran: Body[] = [];
  const film = await cinema.make(shots(60));
  const over = new AbortController();
  const looks: string[][] = [];
  const watching = (async () => {
    while (!over.signal.aborted) looks.push(await cinema.present(film));
  })();
  const seen = await fixture.startWorker(answering(ran));
  await state(film, 'completed');
  over.abort();
  await watching;
  const running = looks.filter((look) => look.at(-1) === 'state running');
  expect(running.length).toBeGreaterThan(20);
  expect(running.filter((look) => look.length !== 2)).toEqual([]);
  expect(seen.rebuilds).toEqual([]);
}, 30_000);

test('a shot competes in the dispatch after the one before it: equal members take turns', async () => {
  const ran: string[] = [];
  const film = await cinema.make(shots(6));
  for (let index = 0; index < 6; index += 1)
    await fixture.queue.submit(aNewJob(-100, { member: 'other' }));
  await fixture.startWorker(async (job, log) => {
    ran.push(job.facts.member);
    await sleep(120);
    log.head({ status: 200, headers: [] });
    return { kind: 'completed' };
  });
  await state(film, 'completed');
  await eventually(() => ran.length === 12, { what: 'all jobs' });
  for (let pair = 0; pair < 12; pair += 2)
    expect(ran.slice(pair, pair + 2).toSorted((a, b) => a.localeCompare(b))).toEqual([
      'other',
      'producer',
    ]);
}, 30_000);

test('a pointer that finds nothing pauses the film and says so; skipping goes on without that shot', async () => {
  const ran: Body[] = [];
  const templates = shots(4);
  templates[2] = aTemplate({ shot: 3 }, [{ from: '/data/7/seed', to: '/seed' }]);
  await fixture.startWorker(answering(ran));
  const film = await cinema.make(templates);
  await state(film, 'paused');
  expect((await cinema.films.read(film))?.reason).toBe(
    'shot 3 takes /data/7/seed from the result before it, where there is nothing',
  );
  await cinema.service.resume(film);
  expect(await cinema.films.read(film)).toMatchObject({ state: 'paused', done: 2 });
  await cinema.service.skip(film);
  expect(await cinema.films.read(film)).toMatchObject({ state: 'paused', done: 3 });
  await cinema.service.resume(film);
  await state(film, 'completed');
  expect(numbers(ran)).toEqual([1, 2, 4]);
});

test('a value with more levels than can be written pauses the film', async () => {
  await fixture.startWorker(async (_job, log) => {
    log.head({ status: 200, headers: [] });
    await log.write(Buffer.from(`{"data":[{"seed":${'['.repeat(60_000)}${']'.repeat(60_000)}}]}`));
    return { kind: 'completed' };
  });
  const film = await cinema.make(chained(2));
  await state(film, 'paused');
  expect((await cinema.films.read(film))?.reason).toBe(
    'shot 2 takes /data/0/seed, which has too many levels',
  );
});

test('a failed shot fails the film; a retry runs that shot again and the film goes on', async () => {
  const ran: Body[] = [];
  await fixture.startWorker(
    answering(
      ran,
      ({ shot }) => shot === 3 && numbers(ran).filter((each) => each === 3).length === 1,
    ),
  );
  const film = await cinema.make(chained(5));
  await state(film, 'failed');
  const failed = await cinema.films.read(film);
  expect(failed?.reason).toBe('shot 3 failed: it broke off');
  await cinema.service.retry(film);
  await state(film, 'completed');
  expect(numbers(ran)).toEqual([1, 2, 3, 3, 4, 5]);
  expect(ran.map(({ seed }) => seed)).toEqual([undefined, 10, 20, 20, 30, 40]);
  if (failed === undefined) throw new Error('no film');
  expect((await cinema.films.shots(failed))[2]?.tries).toBe(2);
});

test('an answer that is an error of the model server fails the film as well', async () => {
  const film = await cinema.make(shots(2));
  await fixture.startWorker(async (_job, log) => {
    log.head({ status: 400, headers: [] });
    await log.write(Buffer.from('{"error":{}}'));
    return { kind: 'completed' };
  });
  await state(film, 'failed');
  expect((await cinema.films.read(film))?.reason).toBe(
    'shot 1 failed: the model server answered 400',
  );
});

test('paused, a film parks its waiting shot; a running one ends and none follows', async () => {
  const ran: Body[] = [];
  const film = await cinema.make(shots(3));
  await cinema.service.pause(film);
  expect(await cinema.present(film)).toEqual(['state paused']);
  const gate = await gatedWorker(ran);
  await cinema.service.resume(film);
  await eventually(() => ran.length === 1, { what: 'the first shot' });
  await cinema.service.pause(film);
  gate.open();
  await eventually(async () => (await cinema.films.read(film))?.done === 1, { what: 'its end' });
  expect(await cinema.present(film)).toEqual(['state paused']);
  await cinema.service.resume(film);
  await state(film, 'completed');
  expect(numbers(ran)).toEqual([1, 2, 3]);
});

test('a cancelled film takes its waiting shot away, and aborts one that runs', async () => {
  const waiting = await cinema.make(shots(3));
  await cinema.service.cancel(waiting);
  expect(await cinema.present(waiting)).toEqual(['state cancelled']);
  const film = await cinema.make(shots(3));
  let aborted = false;
  await fixture.startWorker(async (_job, _log, signal) => {
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
    aborted = true;
    return { kind: 'cancelled', code: 'cancelled', forget: false };
  });
  await eventually(async () => (await cinema.films.read(film))?.isActive === true, {
    what: 'its start',
  });
  await cinema.service.cancel(film);
  await eventually(async () => aborted && (await cinema.present(film)).length === 1, {
    what: 'the abort',
  });
  expect(await cinema.present(film)).toEqual(['state cancelled']);
});

test('what a shot was parked for, or had ended for, is on its record', async () => {
  const film = await cinema.make(shots(2));
  const records = new RedisJobRecords(fixture.admin, fixture.keys);
  const absences = async (jobId: string) => (await records.read(jobId))?.absences;
  const first = (await cinema.films.read(film))?.jobId ?? '';
  expect(await absences(first)).toEqual([]);
  await cinema.service.pause(film);
  const [parked] = (await absences(first)) ?? [];
  expect(parked).toMatchObject({ why: 'paused', toMs: null });
  expect(Math.abs((parked?.fromMs ?? 0) - Date.now())).toBeLessThan(60_000);
  await cinema.service.resume(film);
  const [pause] = (await absences(first)) ?? [];
  expect(pause).toMatchObject({ why: 'paused', fromMs: parked?.fromMs });
  expect(pause?.toMs).toBeGreaterThanOrEqual(pause?.fromMs ?? Infinity);
  let isBroken = true;
  await fixture.startWorker(answering([], () => isBroken));
  await state(film, 'failed');
  const { endedMs } = (await records.read(first))!;
  isBroken = false;
  await cinema.service.retry(film);
  await state(film, 'completed');
  const all = (await absences(first)) ?? [];
  expect(all).toMatchObject([pause!, { why: 'ended', fromMs: endedMs }]);
  expect(all[1]?.toMs).toBeGreaterThanOrEqual(endedMs ?? Infinity);
});

test('of a film that is paused and resumed all day the last pauses are kept, and no more', async () => {
  const film = await cinema.make(shots(1));
  for (let count = 0; count < 100; count += 1) {
    await cinema.service.pause(film);
    await cinema.service.resume(film);
  }
  const id = (await cinema.films.read(film))?.jobId ?? '';
  const { absences } = (await new RedisJobRecords(fixture.admin, fixture.keys).read(id))!;
  expect(absences.length).toBeGreaterThan(50);
  expect(absences.length).toBeLessThan(100);
  const times = absences.flatMap(({ fromMs, toMs }) => [fromMs, toMs ?? 0]);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(Math.min(...times)).toBeGreaterThan(1e12);
});

test('a shot that is made while its film is paused is parked from its beginning', async () => {
  const records = new RedisJobRecords(fixture.admin, fixture.keys);
  const film = await cinema.make(shots(2));
  const ran: Body[] = [];
  const gate = await gatedWorker(ran);
  await eventually(() => ran.length === 1, { what: 'the first shot' });
  await cinema.service.pause(film);
  gate.open();
  await eventually(async () => (await cinema.films.read(film))?.done === 1, { what: 'its end' });
  const second = (await cinema.films.read(film))?.jobId ?? '';
  const { absences, createdMs } = (await records.read(second))!;
  expect(absences).toEqual([{ why: 'paused', fromMs: createdMs, toMs: null }]);
});

test('a paused film keeps no deadline of its shot', async () => {
  const deadlines = { start: { withinMs: 1 }, cancelAfterMs: 1 };
  const film = await cinema.make([{ ...aTemplate({ shot: 1 }), deadlines }]);
  await cinema.service.pause(film);
  const care = new QueueCare(fixture.admin, fixture.keys, new RedisClock());
  const { pool } = fixture.keys;
  expect(await fixture.admin.zcard(`${pool}:deadlines`)).toBe(0);
  await care.sweepDeadlines();
  expect(await cinema.films.read(film)).toMatchObject({
    state: 'paused',
    reason: 'it was asked to',
  });
  const ran: Body[] = [];
  await cinema.service.resume(film);
  await fixture.startWorker(answering(ran));
  await state(film, 'completed');
  expect(numbers(ran)).toEqual([1]);
});

test('the job of a parked shot can be cancelled; its film makes it anew', async () => {
  const film = await cinema.make(shots(2));
  await cinema.service.pause(film);
  const { jobId } = (await cinema.films.read(film)) ?? {};
  const records = new RedisJobRecords(fixture.admin, fixture.keys);
  expect(await records.cancel(String(jobId))).toBe('cancelled');
  expect(await records.read(String(jobId))).toMatchObject({ state: 'cancelled' });
  expect(await cinema.films.read(film)).toMatchObject({ state: 'paused', jobId: null });
  const ran: Body[] = [];
  const seen = await fixture.startWorker(answering(ran));
  await cinema.service.resume(film);
  await state(film, 'completed');
  expect(numbers(ran)).toEqual([1, 2]);
  expect(seen.dispatched).not.toContain(jobId);
  expect(seen.errors).toEqual([]);
});

test('a shot that ends with its film, or is skipped, is told of like any end', async () => {
  const templates = shots(2).map((template) => ({ ...template, webhook: 'https://a.example/' }));
  const film = await cinema.make(templates);
  await cinema.service.skip(film);
  const cancelled = await cinema.make(templates);
  await cinema.service.cancel(cancelled);
  const entries = await fixture.admin.lrange(fixture.keys.outbox, 0, -1);
  expect(
    entries.map(readEndedJob).map(({ outcome, message, facts }) => [outcome, message, facts.film]),
  ).toEqual([
    ['cancelled', 'the film goes on without this shot', { id: film, shot: 1 }],
    ['cancelled', 'the film was cancelled', { id: cancelled, shot: 1 }],
  ]);
});

test('a shot that other hands took away is brought back by the scorer, once', async () => {
  const film = await cinema.make(chained(3));
  const { jobId } = (await cinema.films.read(film)) ?? {};
  const job = await fixture.queue.queue.getJob(String(jobId));
  await job?.remove();
  expect(await cinema.service.repair()).toEqual([film]);
  expect(await cinema.service.repair()).toEqual([]);
  const ran: Body[] = [];
  await fixture.startWorker(answering(ran));
  await state(film, 'completed');
  expect(numbers(ran)).toEqual([1, 2, 3]);
});

test('a body too large for Redis goes through the body store, with what it takes put in', async () => {
  const ran: { shot: number; seed?: unknown; pad: string }[] = [];
  const templates = chained(3);
  const filmId = randomUUID();
  const large = Buffer.from(JSON.stringify({ shot: 2, pad: 'x'.repeat(400_000) }));
  await storeBody(fixture.store, fileName(filmId, 2), large);
  templates[1] = {
    ...aTemplate({}, [{ from: '/data/0/seed', to: '/seed' }]),
    body: { file: true },
  };
  await fixture.startWorker(async (job, log) => {
    const pieces: Buffer[] = [];
    if (job.body === null)
      for await (const piece of fixture.store.read(`${job.id}.request`)) pieces.push(piece);
    const bytes = job.body ?? Buffer.concat(pieces);
    expect(bytes.length).toBe(job.facts.bodyBytes);
    const body = JSON.parse(bytes.toString()) as (typeof ran)[number];
    ran.push(body);
    log.head({ status: 200, headers: [] });
    await log.write(Buffer.from(JSON.stringify({ data: [{ seed: body.shot * 10 }] })));
    return { kind: 'completed' };
  });
  const caps = { waiting: null, bytes: null };
  await cinema.service.create({ id: filmId, member: 'producer', caps, templates });
  await state(filmId, 'completed');
  expect(ran.map(({ shot, seed }) => [shot, seed])).toEqual([
    [1, undefined],
    [2, 10],
    [3, 20],
  ]);
  expect(ran[1]?.pad).toHaveLength(400_000);
});

test('with replies of settlements lost every shot runs once, in order', async () => {
  const ran: Body[] = [];
  let commands = 0;
  const proxy = await startCuttingProxy(
    redis.socket,
    /"fetchNext":/,
    () => (commands += 1) % 3 === 0,
  );
  try {
    const film = await cinema.make(chained(40));
    await fixture.startWorker(answering(ran), proxy.url);
    await state(film, 'completed');
    expect(proxy.cuts).toBeGreaterThan(4);
    expect(numbers(ran)).toEqual(upTo(40));
  } finally {
    await fixture.closeWorkers();
    await proxy.close();
  }
}, 60_000);

test('120 shots, pauses, skips and retries at random, worker and Redis killed: none lost, repeated, reordered or doubled', async () => {
  const ran: Body[] = [];
  const seed = Number(process.env.FILM_SEED ?? Date.now() % 1_000_000);
  process.stdout.write(`FILM_SEED=${seed}\n`);
  const random = new Random(seed);
  const run = answering(ran, () => random.next() < 0.08);
  const attended: RunJob = async (job, log, signal) => {
    const result = await run(job, log, signal);
    await sleep(5);
    return signal.aborted ? { kind: 'handed-back' } : result;
  };
  await fixture.startWorker(attended);
  const film = await cinema.make(chained(120));
  const faults: string[][] = [];
  let kills = 0;
  const quietly = async (change: Promise<void>): Promise<boolean> =>
    change.then(
      () => true,
      () => false,
    );
  for (;;) {
    const record = await cinema.films.read(film);
    if (record === undefined || record.state === 'completed') break;
    const look = await cinema.present(film);
    const most = look.at(-1) === 'state running' ? [2] : [1, 2];
    if (look.at(-1) !== 'state completed' && !most.includes(look.length)) faults.push(look);
    const chance = random.next();
    if (record.state === 'failed') {
      if (chance < 0.7) await quietly(cinema.service.retry(film));
      else await quietly(cinema.service.skip(film));
    } else if (record.state === 'paused') await quietly(cinema.service.resume(film));
    else if (chance < 0.2) await quietly(cinema.service.pause(film));
    else if (chance < 0.25) await quietly(cinema.service.skip(film));
    // However fast the machine is: one kill for each part of the film.
    if (record.done < (kills + 1) * SHOTS_A_KILL) continue;
    kills += 1;
    if (kills % 2 === 1) {
      await redis.kill('SIGKILL');
      await redis.restart();
    } else {
      await fixture.closeWorkers();
      await fixture.startWorker(attended);
    }
  }
  expect(kills).toBeGreaterThan(3);
  expect(faults).toEqual([]);
  const record = await cinema.films.read(film);
  if (record === undefined) throw new Error('no film');
  const outcomes = (await cinema.films.shots(record)).map(({ outcome }) => outcome);
  const wanted = upTo(120).filter((shot) => outcomes[shot - 1] === 'completed');
  expect(outcomes.filter((outcome) => outcome !== 'completed' && outcome !== 'skipped')).toEqual(
    [],
  );
  expect(record.runs).toBe(wanted.length);
  const firstRuns = [...new Set(numbers(ran))];
  expect(firstRuns).toEqual(firstRuns.toSorted((a, b) => a - b));
  for (const [index, { shot, seed }] of ran.entries()) {
    if (shot === 1) continue;
    expect(ran.slice(0, index).every((before) => before.shot <= shot)).toBe(true);
    expect(seed).toBe(10 * Math.max(0, ...wanted.filter((each) => each < shot)));
  }
}, 120_000);

test('an Idempotency-Key names its film for as long as the film is kept, and no longer', async () => {
  await fixture.startWorker(answering([]));
  const idempotency = { name: 'name of the key', request: 'what was asked for' };
  const order = (request = idempotency.request) => ({
    id: randomUUID(),
    member: 'producer',
    caps: { waiting: null, bytes: null },
    templates: shots(2),
    idempotency: { ...idempotency, request },
  });
  const film = await cinema.service.create(order());
  expect(await cinema.service.create(order())).toBe(film);
  expect(await cinema.films.known(idempotency)).toBe(film);
  await expect(cinema.service.create(order('something else'))).rejects.toMatchObject({
    code: 'idempotency_mismatch',
  });
  await state(film, 'completed');
  const { pool } = fixture.keys;
  const key = `${pool}:filmkey:${idempotency.name}`;
  const [kept, named] = await Promise.all(
    [`${pool}:film:${film}`, key].map(async (each) => fixture.admin.pttl(each)),
  );
  expect(kept).toBeGreaterThan(0);
  expect(Math.abs(Number(kept) - Number(named))).toBeLessThan(5000);
  await fixture.admin.del(`${pool}:film:${film}`);
  expect(await cinema.films.known(idempotency)).toBeUndefined();
  const next = order('something else');
  expect(await cinema.service.create(next)).toBe(next.id);
});
