import { fileURLToPath } from 'node:url';
import type { BerthConfig } from '../config/load.ts';
import {
  type RedisPlace,
  type RedisSettings,
  embeddedRedisSpec,
  quarterOfMemory,
} from './embedded-redis.ts';
import type { ProcessSpec } from './kept-process.ts';

/** The processes of `npm start`, in the order in which they need each other. */
export interface ProcessPlan {
  /** Redis and the demo model server, where they are ours: started first, one by one, and stopped last. */
  readonly foundations: readonly ProcessSpec[];
  /** Ingress, GPU worker and scorer. */
  readonly workers: readonly ProcessSpec[];
  /** Takes a `listening` message: a free port that was chosen once is kept at restarts. */
  readonly noteListening: (name: string, port: number) => void;
  /** Where clients reach the ingress; its port is 0 until the ingress has said it. */
  readonly address: () => string;
}

/** The folder of the built code, above `src` and `workers`. */
const built = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Says which processes a configuration needs.
 *
 * @param dataDir the real path of DATA_DIR.
 * @param redisPlace where the embedded Redis lives, or null for an external one.
 */
export function planProcesses(
  config: BerthConfig,
  dataDir: string,
  redisPlace: RedisPlace | null,
): ProcessPlan {
  let ingressPort = config.http.port;
  let demoPort = 0;
  const usesDemo = config.modelServer.url === null;

  const env = (): NodeJS.ProcessEnv => ({
    ...process.env,
    DATA_DIR: dataDir,
    HOST: config.http.host,
    PORT: String(ingressPort),
    ...(redisPlace === null ? {} : { REDIS_URL: `unix://${redisPlace.socket}` }),
    ...(usesDemo ? { MODEL_SERVER_URL: `http://127.0.0.1:${demoPort}` } : {}),
  });
  const worker = (name: string, file: string): ProcessSpec => ({
    name,
    command: process.execPath,
    args: () => ['--enable-source-maps', `${built}${file}`],
    env,
    isDetached: false,
    readiness: 'ready',
  });
  const demo: ProcessSpec = {
    name: 'demo',
    command: process.execPath,
    args: () => [
      ...['--enable-source-maps', `${built}src/demo-model-server/main.js`],
      ...['--host', '127.0.0.1', '--port', String(demoPort)],
    ],
    env: () => process.env,
    isDetached: true,
    readiness: 'listening',
  };

  return {
    foundations: [
      ...(redisPlace === null ? [] : [embeddedRedisSpec(redisPlace, redisSettings(config))]),
      ...(usesDemo ? [demo] : []),
    ],
    workers: [
      worker('ingress', 'src/server.js'),
      worker('gpu', 'workers/gpu.js'),
      worker('scorer', 'workers/scorer.js'),
    ],
    noteListening: (name, port) => {
      if (name === 'ingress') ingressPort = port;
      if (name === 'demo') demoPort = port;
    },
    address: () => {
      const { host } = config.http;
      return `http://${host.includes(':') ? `[${host}]` : host}:${ingressPort}`;
    },
  };
}

function redisSettings(config: BerthConfig): RedisSettings {
  return { fsync: config.redis.fsync, maxMemoryBytes: quarterOfMemory() };
}
