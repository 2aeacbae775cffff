import { createRedisBackend } from 'bullmq';
import type { QueueBaseOptions, RedisQueueBackend } from 'bullmq';

/** The parts of BullMQ's Redis backend that Berth replaces. */
export type BackendOverrides = (backend: RedisQueueBackend) => Partial<RedisQueueBackend>;

/** A BullMQ backend factory whose named methods are Berth's; everything else stays BullMQ's. */
export function composedBackend(overrides: BackendOverrides) {
  return (
    name: string,
    opts: QueueBaseOptions,
    flags?: { blocking?: boolean; withBlockingConnection?: boolean },
  ): RedisQueueBackend => {
    const backend = createRedisBackend(name, opts, flags);
    return Object.assign(backend, overrides(backend));
  };
}
