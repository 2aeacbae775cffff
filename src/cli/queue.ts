import type { QueueView } from '../gateway/queue-view.ts';
import type { BerthClient } from './berth-client.ts';
import { queueTable } from './queue-table.ts';
import type { Terminal } from './terminal.ts';

/** How the queue is shown. */
export interface QueueOptions {
  readonly json?: boolean;
  /** Whether to show it again at each change until interrupted. */
  readonly watch?: boolean;
}

/** Between two looks, in ms. */
const LOOK_MS = 2000;
/** Puts what follows at the top of an empty terminal. */
const CLEAR = '\u001b[H\u001b[2J\u001b[3J';

/** `berth queue`: what runs and what waits, as the plan was last published. */
export async function queue(
  client: BerthClient,
  terminal: Terminal,
  { json = false, watch = false }: QueueOptions,
): Promise<number> {
  terminal.ifInterrupted('the queue goes on.');
  let told = '';
  for (;;) {
    const view = await client.json<QueueView>('/berth/queue');
    const text = json ? `${JSON.stringify(view, null, watch ? undefined : 2)}\n` : queueTable(view);
    if (text !== told) {
      const before = watch && !json && terminal.out.isTTY ? CLEAR : told === '' || json ? '' : '\n';
      terminal.out.write(before + text);
      told = text;
    }
    if (!watch) return 0;
    await terminal.sleep(LOOK_MS);
  }
}
