import { loadConfigOrExit } from '../../src/config/load.ts';
import { embeddedRedisSpec } from '../../src/supervise/embedded-redis.ts';
import type { ProcessSpec } from '../../src/supervise/kept-process.ts';
import { serve } from '../../src/supervise/serve.ts';
import type { Behaviour } from './supervised-process.ts';

/** What the supervisor under test runs in place of Berth's processes. */
export interface SupervisorOrder {
  /** The program of `supervised-process.ts`, as node can run it. */
  readonly program: string;
  readonly children: readonly Behaviour[];
}

const { program, children } = JSON.parse(process.argv[2] ?? '{}') as SupervisorOrder;
const config = loadConfigOrExit();
let port = config.http.port;

const exitCode = await serve(config, (_config, _dataDir, redisPlace) => ({
  foundations:
    redisPlace === null
      ? []
      : [embeddedRedisSpec(redisPlace, { fsync: 'everysec', maxMemoryBytes: 100_000_000 })],
  workers: children.map((behaviour): ProcessSpec => ({
    name: behaviour.name,
    command: process.execPath,
    args: () => [program, JSON.stringify(behaviour)],
    env: () => ({ ...process.env, PORT: String(port) }),
    isDetached: false,
    readiness: 'ready',
  })),
  noteListening: (_name, taken) => (port = taken),
  address: () => `http://127.0.0.1:${port}`,
}));
process.exit(exitCode);
