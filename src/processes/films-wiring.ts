import type { connectRedis } from '../adapters/redis/connection.ts';
import type { PoolKeys } from '../adapters/redis/keys.ts';
import { RedisFilms } from '../adapters/redis/redis-films.ts';
import { RedisResultReader } from '../adapters/redis/redis-result-reader.ts';
import type { Seal } from '../adapters/storage/seal.ts';
import type { BerthConfig } from '../config/load.ts';
import { FilmService } from '../gateway/film-service.ts';
import type { ShotMaking } from '../gateway/film-template.ts';
import { INLINE_BYTES } from '../ingress/body-intake.ts';
import { FilmRoutes } from '../ingress/routes/films.ts';
import type { FilmRoutesDependencies } from '../ingress/routes/films.ts';
import type { BodyStore } from '../ports/body-store.ts';
import type { AdmissionWatch } from './admission-watch.ts';

type Redis = ReturnType<typeof connectRedis>;

/** Films of the pool. */
export function redisFilms(config: BerthConfig, redis: Redis, keys: PoolKeys): RedisFilms {
  return new RedisFilms({
    redis,
    keys,
    waitingCap: config.caps.waiting,
    retention: {
      completedMs: config.retention.completedSeconds * 1000,
      failedMs: config.retention.failedSeconds * 1000,
    },
  });
}

/** How shots are made in this process. */
export function shotMaking(config: BerthConfig, store: BodyStore, seal: Seal): ShotMaking {
  return {
    maxAttempts: config.attempts.maxAttempts,
    store,
    seal: (name, plain) => seal.close(name, plain),
    openSeal: (name, sealed) => seal.open(name, sealed),
    inlineBytes: INLINE_BYTES,
  };
}

/** What makes, changes and looks after films in this process. */
export function filmService(
  config: BerthConfig,
  redis: Redis,
  keys: PoolKeys,
  store: BodyStore,
  seal: Seal,
): FilmService {
  return new FilmService({
    ...shotMaking(config, store, seal),
    films: redisFilms(config, redis, keys),
    results: new RedisResultReader(redis, keys, store),
  });
}

/** The routes of films of an ingress. */
export function ingressFilms(
  from: {
    config: BerthConfig;
    redis: Redis;
    keys: PoolKeys;
    store: BodyStore;
    seal: Seal;
    admission: AdmissionWatch;
  } & Pick<
    FilmRoutesDependencies,
    'catalogue' | 'headerRules' | 'needsNoGpu' | 'positions' | 'webhookFault'
  >,
): FilmRoutes {
  const { config, redis, keys, store, seal, admission } = from;
  return new FilmRoutes({
    ...from,
    service: filmService(config, redis, keys, store, seal),
    films: redisFilms(config, redis, keys),
    mayStore: () => admission.mayStore(),
    rules: config.rules,
    refusal: () => admission.refusal(),
  });
}
