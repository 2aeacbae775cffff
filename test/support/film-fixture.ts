import { randomBytes, randomUUID } from 'node:crypto';
import { RedisFilms } from '../../src/adapters/redis/redis-films.ts';
import { Seal } from '../../src/adapters/storage/seal.ts';
import { FilmService } from '../../src/gateway/film-service.ts';
import { createAttendShot } from '../../src/gateway/film-shot-run.ts';
import type { ShotTemplate, Take } from '../../src/gateway/film-template.ts';
import { RedisResultReader } from '../../src/adapters/redis/redis-result-reader.ts';
import { aNewJob } from './queue-fixture.ts';
import type { queueFixture } from './queue-fixture.ts';

/** A shot's template with unremarkable facts. */
export function aTemplate(body: object, take: readonly Take[] = [], points = -100): ShotTemplate {
  const { facts } = aNewJob(points, { member: 'producer' });
  return {
    head: { method: 'POST', target: '/v1/images/generations', headers: [] },
    facts,
    points,
    body: JSON.stringify(body),
    take,
  };
}

/** Films on the Redis of a queue fixture; its workers attend their shots from then on. */
export function filmFixture(fixture: Awaited<ReturnType<typeof queueFixture>>) {
  const seal = new Seal(randomBytes(32));
  const films = new RedisFilms({
    redis: fixture.admin,
    keys: fixture.keys,
    waitingCap: 20_000,
    retention: { completedMs: 60_000, failedMs: 60_000 },
  });
  const making = {
    films,
    store: fixture.store,
    seal: (name: string, plain: Buffer) => seal.close(name, plain),
    openSeal: (name: string, sealed: Buffer) => seal.open(name, sealed),
    inlineBytes: 256 * 1024,
    maxAttempts: 5,
  };
  fixture.around.attend = createAttendShot(making);
  const results = new RedisResultReader(fixture.admin, fixture.keys, fixture.store);
  const service = new FilmService({ ...making, results });
  return {
    films,
    service,
    /** Makes a film of these shots; resolves to its id. */
    make: async (templates: readonly ShotTemplate[]): Promise<string> => {
      const id = randomUUID();
      const caps = { waiting: null, bytes: null };
      await service.create({ id, member: 'producer', caps, templates });
      return id;
    },
    /** Shots of the film that wait or run at this moment. */
    present: async (filmId: string): Promise<string[]> => {
      const { queue } = fixture.keys;
      const replies = await fixture.admin
        .multi()
        .zrange(`${queue}prioritized`, '0', '-1')
        .zrange(`${queue}delayed`, '0', '-1')
        .lrange(`${queue}active`, 0, -1)
        .lrange(`${queue}wait`, 0, -1)
        .hget(`${fixture.keys.pool}:film:${filmId}`, 'state')
        .exec();
      const lists = (replies ?? []).slice(0, 4).flatMap((reply) => reply[1] as string[]);
      return [...lists, `state ${String(replies?.[4]?.[1])}`];
    },
  };
}
