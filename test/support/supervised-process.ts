import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A child of a supervisor under test. It says over IPC what Berth's own processes say, and prints on
 * stdout what it is asked to do: `<name> started`, `<name> stopping`, `<name> drained`.
 */
export interface Behaviour {
  readonly name: string;
  /** Listens on PORT, as the ingress does. */
  readonly listens?: boolean;
  /** Never says that it is ready. */
  readonly isNeverReady?: boolean;
  /** Ends by itself with this code, when it is ready. */
  readonly exitCode?: number;
  /** Written to stderr at start. */
  readonly complaint?: string;
  /** Drains until SIGUSR2 says that it is done; else it has nothing to drain. */
  readonly drainsUntilTold?: boolean;
  /** Does not react to signals. */
  readonly ignoresSignals?: boolean;
}

const behaviour = JSON.parse(process.argv[2] ?? '{}') as Behaviour;
const say = (text: string): void => void process.stdout.write(`${behaviour.name} ${text}\n`);

const told = once(process, 'SIGUSR2');
let isStopping = false;
async function stop(): Promise<void> {
  if (behaviour.ignoresSignals === true || isStopping) return;
  isStopping = true;
  say('stopping');
  if (behaviour.drainsUntilTold === true) await told;
  say('drained');
  process.exit(0);
}
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
  process.on(signal, () => void stop());
}
process.on('disconnect', () => void stop());
process.stdout.on('error', () => undefined);

say('started');
if (behaviour.complaint !== undefined) process.stderr.write(`${behaviour.complaint}\n`);
if (behaviour.listens === true) {
  const server = createServer((_, response) => response.end('here'));
  await once(server.listen(Number(process.env.PORT), '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  process.send?.({ type: 'listening', port });
}
if (behaviour.isNeverReady !== true) {
  await new Promise((resolve) => process.send?.({ type: 'ready' }, resolve));
}
if (behaviour.exitCode !== undefined) process.exit(behaviour.exitCode);
setInterval(() => undefined, 1000);
