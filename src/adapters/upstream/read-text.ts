import type { ModelServer } from '../../ports/model-server.ts';

/** How a small answer of the model server is read. */
export interface ReadTextOptions {
  /** Credentials the model server wants, flat. */
  headers: readonly string[];
  /** Milliseconds for the whole answer. */
  timeoutMs: number;
  /** Reading stops when this is true of what came so far; default: never. */
  isEnough?: (soFar: string) => boolean;
  /** Ends the reading early. */
  signal?: AbortSignal;
}

/** Longest answer that is read, in characters. */
const MOST = 16_000_000;

/** GETs a path and reads its answer as text. Throws ModelServerFault, also when it takes too long or is too long. */
export async function readText(
  server: ModelServer,
  target: string,
  options: ReadTextOptions,
): Promise<{ status: number; text: string }> {
  const abort = new AbortController();
  const stop = (): void => abort.abort();
  const timer = setTimeout(stop, options.timeoutMs);
  options.signal?.addEventListener('abort', stop, { once: true });
  if (options.signal?.aborted === true) stop();
  try {
    const answer = await server.call(
      { method: 'GET', target, headers: options.headers, body: null },
      abort.signal,
    );
    const decoder = new TextDecoder();
    let text = '';
    for await (const piece of answer.body) {
      text += decoder.decode(piece, { stream: true });
      if (options.isEnough?.(text) === true || text.length > MOST) break;
    }
    return { status: answer.status, text };
  } finally {
    clearTimeout(timer);
    options.signal?.removeEventListener('abort', stop);
    stop();
  }
}
