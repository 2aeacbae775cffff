import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from './answer.ts';

/** One request whose body has been read, and its answer. */
export interface Exchange {
  readonly method: string;
  /** Path of the target, percent-encoding kept. */
  readonly path: string;
  /** What followed the question mark, as it came; empty when nothing did. */
  readonly rawQuery: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly answer: Answer;
}

/** Path and query of a request target in origin or absolute form. */
export function splitTarget(target: string): { readonly path: string; readonly rawQuery: string } {
  const origin = /^https?:\/\/[^/?]*/i.exec(target)?.[0] ?? '';
  const [path = '', ...query] = target.slice(origin.length).split('?');
  return { path: path === '' ? '/' : path, rawQuery: query.join('?') };
}
