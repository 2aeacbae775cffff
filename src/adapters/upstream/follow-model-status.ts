import type { ModelServer } from '../../ports/model-server.ts';
import { eventData } from './event-data.ts';
import type { ModelStatusRow } from './model-directory.ts';
import { parseModelStatus } from './model-status.ts';

/** How an event stream is followed. */
export interface FollowOptions {
  server: ModelServer;
  /** Credentials the model server wants, flat. */
  headers: readonly string[];
  /** Silence after which the stream is given up, in ms. */
  silenceMs: number;
  signal: AbortSignal;
  /** Called with the models of each modelStatus; the first comes when the stream opens. */
  onStatus: (rows: readonly ModelStatusRow[]) => void;
  /** Called with the data of every event. */
  onData?: (data: string) => void;
}

/**
 * Follows one `/api/events` stream until it ends, is silent for too long or the signal aborts. Resolves when an answer
 * is no stream; throws ModelServerFault for the rest.
 */
export async function followModelStatus(options: FollowOptions): Promise<void> {
  const { server, headers, silenceMs, signal, onStatus } = options;
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  let silence = setTimeout(stop, silenceMs);
  const heard = async function* (body: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
    for await (const piece of body) {
      clearTimeout(silence);
      silence = setTimeout(stop, silenceMs);
      yield piece;
    }
  };
  try {
    const answer = await server.call(
      { method: 'GET', target: '/api/events', headers, body: null },
      abort.signal,
    );
    if (answer.status !== 200) return;
    for await (const data of eventData(heard(answer.body))) {
      options.onData?.(data);
      const rows = parseModelStatus(data);
      if (rows !== undefined) onStatus(rows);
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', stop);
    stop();
  }
}
