/** An answer that speaks of the model server's state, not of the request: worth another attempt. */
export interface TransientAnswer {
  code: 'model_server_unreachable' | 'model_unavailable';
  /** What `Retry-After` asked for, in ms. */
  askedMs?: number;
}

/** Statuses whose body has to be read before the answer can be passed on. */
export const SUSPECT_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503]);

const PASSING_500 = /unloaded|shutting down|reload|exited prematurely|not ready/i;

/**
 * Whether an answer is llama-swap's own word on a passing state (research: its error table): 502 from its proxy, 503
 * while a process is not ready, 429 of its concurrency limit, and those of its 500s that a moment mends. A status that
 * the model itself sent is never one.
 */
export function transientAnswer(
  status: number,
  headers: readonly string[],
  body: string,
): TransientAnswer | undefined {
  const error = readError(body);
  const asked = retryAfterMs(headers);
  const wait = asked === undefined ? {} : { askedMs: asked };
  if (status === 502 && (body.trim() === '' || error.isOwn))
    return { code: 'model_server_unreachable', ...wait };
  if (status === 503 && error.isOwn) return { code: 'model_unavailable', ...wait };
  if (
    status === 429 &&
    (error.code === 'concurrency_limit' || error.isOwn || error.message === 'Too many requests')
  ) {
    return { code: 'model_unavailable', ...wait };
  }
  if (status === 500 && error.isOwn && PASSING_500.test(error.message))
    return { code: 'model_unavailable', ...wait };
  return undefined;
}

/** Reads both shapes of llama-swap's errors: `error` as a string (to v250) and as an object (from v251). */
function readError(body: string): { isOwn: boolean; code: string; message: string } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return { isOwn: false, code: '', message: body };
  }
  if (typeof parsed !== 'object' || parsed === null) return { isOwn: false, code: '', message: '' };
  const { src, error } = parsed as { src?: unknown; error?: unknown };
  const isOwn = src === 'llama-swap';
  if (typeof error === 'string') return { isOwn, code: '', message: error };
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  return {
    isOwn,
    code: typeof code === 'string' ? code : '',
    message: typeof message === 'string' ? message : '',
  };
}

function retryAfterMs(headers: readonly string[]): number | undefined {
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (headers[index]?.toLowerCase() === 'retry-after') {
      const value = headers[index + 1]?.trim() ?? '';
      return /^\d{1,5}$/.test(value) ? Number(value) * 1000 : undefined;
    }
  }
  return undefined;
}
