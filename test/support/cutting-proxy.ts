import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A unix-socket proxy in front of Redis that can lose replies. */
export interface CuttingProxy {
  url: string;
  /** Replies lost so far. */
  readonly cuts: number;
  close(): Promise<void>;
}

/**
 * Passes everything on, but each time a command matches `pattern` and `shouldCut` says so, its reply is thrown away
 * and the connection is cut: the command has run, and its sender cannot know.
 */
export async function startCuttingProxy(
  redisSocket: string,
  pattern: RegExp,
  shouldCut: () => boolean,
): Promise<CuttingProxy> {
  const dir = await mkdtemp(path.join(tmpdir(), 'berth-cut-'));
  const socketPath = path.join(dir, 'cut.sock');
  const open = new Set<Socket>();
  let cuts = 0;
  const server = createServer((client) => {
    const redis = connect(redisSocket);
    let isDoomed = false;
    for (const [from, to] of [
      [client, redis],
      [redis, client],
    ] as const) {
      open.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        open.delete(from);
        to.destroy();
      });
    }
    client.on('data', (bytes) => {
      if (!isDoomed && pattern.test(bytes.toString('latin1')) && shouldCut()) isDoomed = true;
      redis.write(bytes);
    });
    redis.on('data', (bytes) => {
      // A script Redis does not know yet has not run; its text comes again.
      if (isDoomed && !bytes.toString('latin1').startsWith('-NOSCRIPT')) {
        cuts += 1;
        client.destroy();
        redis.destroy();
      } else client.write(bytes);
    });
  });
  server.listen(socketPath);
  await once(server, 'listening');
  return {
    url: `unix://${socketPath}`,
    get cuts() {
      return cuts;
    },
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}
