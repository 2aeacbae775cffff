import { once } from 'node:events';
import { announce, superviseSelf } from '../../src/adapters/process/lifecycle.ts';

/** What a process that supervises itself does in a test. */
export interface LifecycleOrder {
  readonly graceMs: number;
  /** How its `stop` goes: it takes until SIGUSR2 comes, … */
  readonly stopsWhenTold?: boolean;
  /** … or fails. */
  readonly stopFails?: boolean;
  /** Has a bug that throws where nobody catches, right after the start. */
  readonly bug?: 'thrown' | 'rejected';
}

const order = JSON.parse(process.argv[2] ?? '{}') as LifecycleOrder;
const print = (fields: Readonly<Record<string, unknown>>, message: string): void => {
  const err = fields.err instanceof Error ? ` ${fields.err.message}` : '';
  process.stdout.write(`${message}${err}\n`);
};

const told = once(process, 'SIGUSR2');
superviseSelf({
  graceMs: order.graceMs,
  log: { info: print, error: print },
  stop: async (reason) => {
    process.stdout.write(`stop because of ${reason}\n`);
    // Its stderr may lead to a supervisor that is gone.
    process.stderr.write('draining\n');
    if (order.stopsWhenTold === true) await told;
    if (order.stopFails === true) throw new Error('it would not close');
    process.stdout.write('stopped\n');
  },
});
setInterval(() => undefined, 1000);
announce({ type: 'listening', port: 4711 });
announce({ type: 'ready' });
process.stdout.write('up\n');
if (order.bug === 'thrown') {
  setImmediate(() => {
    throw new Error('a bug');
  });
}
if (order.bug === 'rejected') void Promise.reject(new Error('a bug'));
