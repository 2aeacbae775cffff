import type { Catalogue } from './catalogue.ts';
import { get, redirect, type ControlEntry } from './control-route.ts';
import { sendError } from './errors.ts';
import type { Exchange } from './exchange.ts';
import type { LogBook, LogChoice } from './log-book.ts';
import { waitForAbort } from './pace.ts';

/** `/logs` and `/logs/stream…`: what was logged, and what is being logged, without an end. */
export function logRoutes(log: LogBook, catalogue: Catalogue): ControlEntry[] {
  const chosen = (name: string): LogChoice | undefined => {
    if (name === 'proxy' || name === 'upstream') return name;
    const model = catalogue.find(name);
    return model === undefined ? undefined : { modelId: model.id };
  };
  const tail = async (exchange: Exchange, name: string): Promise<void> => {
    const choice = name === '' ? 'all' : chosen(name);
    if (choice !== undefined) await follow(exchange, log, choice);
    else {
      const { answer, headers } = exchange;
      await sendError(answer, headers, 400, `no logger is called ${name}`);
    }
  };
  return [
    [
      '/logs',
      get(async (exchange) => {
        const isPage = exchange.headers.accept?.includes('text/html') === true;
        if (isPage) await redirect(exchange, 302, '/ui/');
        else await exchange.answer.send(200, { 'Content-Type': 'text/plain' }, log.history('all'));
      }),
    ],
    ['/logs/stream', get(tail)],
    ['/logs/stream/*', get(tail)],
  ];
}

/** Sends what was logged, unless `?no-history`, then each line as it comes until the client leaves. */
async function follow({ answer, query }: Exchange, log: LogBook, choice: LogChoice): Promise<void> {
  answer.head(200, {
    'Content-Type': 'text/plain',
    'X-Content-Type-Options': 'nosniff',
    'X-Accel-Buffering': 'no',
  });
  const end = log.listen(choice, (text) => {
    // As at the original, a slow reader loses lines; one that has left is taken off the list below.
    if (!answer.isBehind) answer.write(text).catch(() => undefined);
  });
  try {
    const history = query.has('no-history') ? '' : log.history(choice);
    if (history !== '') await answer.write(history);
    await waitForAbort(answer.signal);
  } finally {
    end();
  }
}
