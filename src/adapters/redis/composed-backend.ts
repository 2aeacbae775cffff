import { createRedisBackend } from 'bullmq';
import type { BackendFactory, RedisQueueBackend } from 'bullmq';

/**
 * A BullMQ backend factory whose named methods are Berth's; everything else stays BullMQ's. Some of the methods are
 * protected in BullMQ's types, so the overrides are a plain object here and typed where they are written.
 */
export function composedBackend(
  overrides: (backend: RedisQueueBackend) => object,
): BackendFactory<RedisQueueBackend> {
  return (name, opts, flags) => {
    const backend = createRedisBackend(name, opts, flags);
    return Object.assign(backend, overrides(backend));
  };
}
