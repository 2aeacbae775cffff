import { Redis } from 'ioredis';

/**
 * How a connection behaves while Redis is away. `prompt`: commands fail at once, or after two seconds without a
 * reply, so that a client gets its 503. `patient`: commands wait for Redis to return, however long. `blocking`:
 * as patient, without command timeouts, for reads that block.
 */
export type ConnectionManner = 'prompt' | 'patient' | 'blocking';

const retryStrategy = (attempt: number): number => Math.min(25 * 2 ** Math.min(attempt, 5), 500);

/**
 * Opens a connection. It reconnects for ever, at least twice a second. `onError` hears of every broken attempt;
 * `connectionName` is what Redis lists it as.
 */
export function connectRedis(
  url: string,
  manner: ConnectionManner,
  onError: (error: Error) => void,
  connectionName?: string,
): Redis {
  const shared = {
    retryStrategy,
    connectTimeout: 2000,
    ...(connectionName === undefined ? {} : { connectionName }),
    ...(manner === 'prompt'
      ? { enableOfflineQueue: false, maxRetriesPerRequest: 1, commandTimeout: 2000 }
      : { maxRetriesPerRequest: null }),
  };
  const redis = url.startsWith('unix:')
    ? new Redis({ ...shared, path: url.replace(/^unix:(\/\/)?/, '') })
    : new Redis(url, { ...shared });
  redis.on('error', onError);
  return redis;
}

/** Resolves when the connection can take commands; rejects after `timeoutMs`. */
export async function whenReady(redis: Redis, timeoutMs: number): Promise<void> {
  if (redis.status === 'ready') return;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      redis.off('ready', onReady);
      reject(new Error(`Redis did not answer within ${timeoutMs} ms`));
    }, timeoutMs);
    const onReady = (): void => {
      clearTimeout(timer);
      resolve();
    };
    redis.once('ready', onReady);
  });
}
