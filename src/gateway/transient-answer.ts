import { headerOf } from './headers.ts';
import { readUpstreamError } from './upstream-error.ts';

/** An answer that speaks of the model server's state, not of the request: worth another attempt. */
export interface TransientAnswer {
  code: 'model_server_unreachable' | 'model_unavailable';
  /** What `Retry-After` asked for, in ms. */
  askedMs?: number;
}

/** Statuses whose body has to be read before the answer can be passed on. */
export const SUSPECT_STATUSES: ReadonlySet<number> = new Set([429, 500, 502, 503]);

/** llama-server's own word while it loads. */
const LOADING_503 = /^loading model$/i;
const PASSING_500 = /unloaded|shutting down|reload|exited prematurely|not ready/i;

/**
 * Whether an answer is llama-swap's own word on a passing state (research: its error table): 502 from its proxy, 503
 * while a process is not ready, 429 of its concurrency limit, and those of its 500s that a moment mends; or that of a
 * web server in between that has lost it (502 and 503 in HTML). Of the model's own statuses only the 503 is one by which
 * llama-server says that it still loads.
 */
export function transientAnswer(
  status: number,
  headers: readonly string[],
  body: string,
): TransientAnswer | undefined {
  const error = readUpstreamError(body);
  const asked = retryAfterMs(headers);
  const wait = asked === undefined ? {} : { askedMs: asked };
  const isPage = isHtml(headers);
  if (status === 502 && (body.trim() === '' || error.isOwn || isPage))
    return { code: 'model_server_unreachable', ...wait };
  if (status === 503 && (error.isOwn || isPage || LOADING_503.test(error.message)))
    return { code: 'model_unavailable', ...wait };
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

/** Whether flat headers say that the body is a web page: no inference route answers in one. */
export function isHtml(headers: readonly string[]): boolean {
  return /^(?:text\/html|application\/xhtml)/i.test(headerOf(headers, 'content-type') ?? '');
}

function retryAfterMs(headers: readonly string[]): number | undefined {
  const value = headerOf(headers, 'retry-after')?.trim() ?? '';
  return /^\d{1,5}$/.test(value) ? Number(value) * 1000 : undefined;
}
