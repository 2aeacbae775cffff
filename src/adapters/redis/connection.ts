import { Redis } from 'ioredis';
import type { Command } from 'ioredis';

/**
 * How a connection behaves while Redis is away. `prompt`: commands fail at once, or after two seconds without a
 * reply, so that a client gets its 503. `patient`: commands wait for Redis to return, however long. `blocking`:
 * as patient, without command timeouts, for reads that block.
 */
export type ConnectionManner = 'prompt' | 'patient' | 'blocking';

const REPLY_WITHIN_MS = 2000;

/**
 * A connection whose commands fail without a reply in time. ioredis has a timeout of its own, but a process that
 * stood still (stopped, starved of CPU) runs its timers before it reads: a reply that has long come would be thrown
 * away, and a client told that Redis is away. So the time is up only once what lies in the socket has been read.
 */
class PromptRedis extends Redis {
  readonly #timed = new WeakSet<Command>();

  override sendCommand(...sent: Parameters<Redis['sendCommand']>): unknown {
    const [command] = sent;
    // One that is sent again on a new connection is still the one that was asked for.
    if (!this.#timed.has(command)) {
      this.#timed.add(command);
      const timer = setTimeout(() => setImmediate(giveUp, command), REPLY_WITHIN_MS);
      const settled = (): void => clearTimeout(timer);
      command.promise.then(settled, settled);
    }
    return super.sendCommand(...sent);
  }
}
const giveUp = (command: Command): void =>
  command.reject(new Error(`No reply from Redis within ${REPLY_WITHIN_MS} ms`));

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
  const isPrompt = manner === 'prompt';
  const options = {
    retryStrategy,
    connectTimeout: 2000,
    ...(connectionName === undefined ? {} : { connectionName }),
    ...(isPrompt
      ? { enableOfflineQueue: false, maxRetriesPerRequest: 1 }
      : { maxRetriesPerRequest: null }),
  };
  const Connection = isPrompt ? PromptRedis : Redis;
  const redis = url.startsWith('unix:')
    ? new Connection({ ...options, path: url.replace(/^unix:(\/\/)?/, '') })
    : new Connection(url, options);
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
