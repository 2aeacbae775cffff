import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { GatewayError } from '../../errors.ts';
import type {
  FilmAnswer,
  FilmRecord,
  FilmState,
  FilmStore,
  NewFilm,
  ShotOffer,
  ShotRecord,
} from '../../ports/film-store.ts';
import type { IdempotencyKey } from '../../ports/job-queue.ts';
import { unavailable } from './bull-job-queue.ts';
import type { PoolKeys } from './keys.ts';
import { Scripts } from './scripts.ts';
import { offerOf, shotJson } from './shot-json.ts';

/** What films need. */
export interface RedisFilmsOptions {
  redis: Redis;
  keys: PoolKeys;
  /** Most jobs that may wait in the pool. */
  waitingCap: number;
  /** How long a film is kept when it is over, in ms. */
  retention: { completedMs: number; failedMs: number };
}

/** How long templates of a film that is never made are kept, in seconds. */
const STAGED_SECONDS = 600;

const FIELDS = ['state', 'total', 'done', 'job', 'last', 'reason', 'rev'] as const;
const MORE_FIELDS = ['created', 'gpuMs', 'runs', 'member'] as const;

/** Films in Redis: every change is one script, which looks at what it changes; see lua/films.lua. */
export class RedisFilms implements FilmStore {
  private readonly options: RedisFilmsOptions;
  private readonly scripts: Scripts;

  constructor(options: RedisFilmsOptions) {
    this.options = options;
    this.scripts = new Scripts(options.redis);
  }

  async stage(filmId: string, from: number, templates: readonly Buffer[]): Promise<void> {
    const fields = templates.flatMap((sealed, index) => [String(from + index), sealed]);
    const key = this.key(filmId, ':shots');
    await this.guarded(async () => {
      await this.options.redis
        .multi()
        .hset(key, ...fields)
        .expire(key, STAGED_SECONDS)
        .exec();
    });
  }

  async create({ id, member, total, caps, first, idempotency }: NewFilm): Promise<string> {
    const own = {
      film: id,
      owner: member,
      total,
      shot: shotJson(first),
      waitingCap: this.options.waitingCap,
      member,
      bytes: first.facts.bodyBytes,
      ...(idempotency === undefined ? {} : { key: idempotency.name, request: idempotency.request }),
      ...(caps.waiting === null ? {} : { memberWaiting: caps.waiting }),
      ...(caps.bytes === null ? {} : { memberBytes: caps.bytes }),
    };
    const reply = await this.run('film-create', own, first.sealedHead, first.body ?? NOTHING);
    switch (reply) {
      case 'ok':
        return id;
      case 'known':
      case 'mismatch': {
        const known = idempotency && (await this.known(idempotency));
        if (known !== undefined) return known;
        throw unavailable(new Error('a film went as its key was repeated'));
      }
      case 'member_full':
        throw new GatewayError('member_queue_full', 'too many of your jobs are waiting', {
          retryAfterSeconds: 30,
        });
      case 'full':
        throw new GatewayError('queue_full', 'too many jobs are waiting', {
          retryAfterSeconds: 60,
        });
      default:
        throw unavailable(new Error(`a film could not be made: ${reply}`));
    }
  }

  async known({ name, request }: IdempotencyKey): Promise<string | undefined> {
    const { redis, keys } = this.options;
    const [film, asked] = await this.guarded(async () =>
      redis.hmget(`${keys.pool}:filmkey:${name}`, 'film', 'request'),
    );
    if (!film || (await this.guarded(async () => redis.exists(this.key(film)))) === 0)
      return undefined;
    if (asked !== request)
      throw new GatewayError(
        'idempotency_mismatch',
        'this Idempotency-Key came with another film before',
      );
    return film;
  }

  async read(filmId: string): Promise<FilmRecord | undefined> {
    const { redis, keys } = this.options;
    const [values, active] = await this.guarded(async () =>
      Promise.all([
        redis.hmget(this.key(filmId), ...FIELDS, ...MORE_FIELDS),
        redis.lrange(`${keys.queue}active`, 0, -1),
      ]),
    );
    const [state, total, done, job, last, reason, rev, created, gpuMs, runs, member] = values;
    if (!state) return undefined;
    return {
      id: filmId,
      member: member ?? '',
      state: state as FilmState,
      total: Number(total),
      done: Number(done),
      jobId: orNull(job),
      lastJobId: orNull(last),
      reason: reason ?? '',
      revision: Number(rev),
      createdMs: Number(created),
      gpuMs: Number(gpuMs ?? 0),
      runs: Number(runs ?? 0),
      isActive: active.includes(job ?? ''),
    };
  }

  async shots({ id, total }: FilmRecord): Promise<ShotRecord[]> {
    const all = await this.guarded(async () => this.options.redis.hgetall(this.key(id, ':jobs')));
    return Array.from({ length: total }, (_, index) => {
      const number = String(index + 1);
      return {
        jobId: orNull(all[number]),
        outcome: all[`${number}:o`] ?? null,
        tries: Number(all[`${number}:t`] ?? 0),
      };
    });
  }

  async template(filmId: string, shot: number): Promise<Buffer | undefined> {
    const key = this.key(filmId, ':shots');
    const sealed = await this.guarded(async () => this.options.redis.hgetBuffer(key, String(shot)));
    return sealed ?? undefined;
  }

  async list(member: string | null, limit: number): Promise<string[]> {
    const { redis, keys } = this.options;
    const index = member === null ? `${keys.pool}:films` : `${keys.pool}:films:of:${member}`;
    return this.guarded(async () => {
      const ids = await redis.zrevrange(index, 0, limit - 1);
      const pipeline = redis.pipeline();
      for (const id of ids) pipeline.exists(this.key(id));
      const known = (await pipeline.exec()) ?? [];
      const gone = ids.filter((_, at) => known[at]?.[1] === 0);
      if (gone.length > 0) await redis.zrem(index, ...gone);
      return ids.filter((id) => !gone.includes(id));
    });
  }

  async pause(filmId: string): Promise<FilmAnswer> {
    return (await this.run('film-pause', { film: filmId })) as FilmAnswer;
  }

  async resume(filmId: string, from: 'paused' | 'failed', offer?: ShotOffer): Promise<FilmAnswer> {
    return (await this.offering('film-resume', { film: filmId, from }, offer)) as FilmAnswer;
  }

  async skip(filmId: string, offer: ShotOffer): Promise<FilmAnswer> {
    const own = { film: filmId, mark: randomUUID() };
    return (await this.offering('film-skip', own, offer)) as FilmAnswer;
  }

  async cancel(filmId: string): Promise<FilmAnswer> {
    return (await this.run('film-cancel', { film: filmId })) as FilmAnswer;
  }

  async running(): Promise<string[]> {
    const key = `${this.options.keys.pool}:films:running`;
    return this.guarded(async () => this.options.redis.smembers(key));
  }

  async repair(filmId: string, offer?: ShotOffer): Promise<'ok' | 'repaired' | 'make'> {
    return (await this.offering('film-repair', { film: filmId }, offer)) as 'ok';
  }

  private async offering(
    script: 'film-resume' | 'film-skip' | 'film-repair',
    own: object,
    offer: ShotOffer | undefined,
  ): Promise<string> {
    const [fields, head, body] = offerOf(offer?.next);
    const done = offer === undefined ? {} : { done: offer.done };
    return this.run(script, { ...own, ...done, ...fields }, head, body);
  }

  private async run(
    script: `film-${'create' | 'pause' | 'resume' | 'skip' | 'cancel' | 'repair'}`,
    own: object,
    head: Buffer = NOTHING,
    body: Buffer = NOTHING,
  ): Promise<string> {
    const { keys, retention } = this.options;
    const json = JSON.stringify({
      pool: keys.pool,
      queue: keys.queue,
      keepMs: retention.failedMs,
      filmKeepMs: retention.completedMs,
      ...own,
    });
    return this.guarded(async () =>
      String(await this.scripts.run(script, keys.pool, json, head, body)),
    );
  }

  private key(filmId: string, part: '' | ':shots' | ':jobs' = ''): string {
    return `${this.options.keys.pool}:film:${filmId}${part}`;
  }

  private async guarded<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      throw unavailable(error);
    }
  }
}

const NOTHING = Buffer.alloc(0);

const orNull = (text: string | null | undefined): string | null =>
  text === undefined || text === '' ? null : text;
