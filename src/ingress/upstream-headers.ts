import type { IncomingMessage } from 'node:http';
import { requestHeaders } from '../gateway/headers.ts';
import { credentialHeaders } from './shown-key.ts';

/** What happens to a client's headers on their way to the model server. */
export interface HeaderRules {
  /** Lower-case names of client headers that do not go upstream. */
  droppedHeaders: ReadonlySet<string>;
  /** Flat headers put in for the model server. */
  addedHeaders: readonly string[];
}

/**
 * Which credential goes to the model server. With keys configured the client's are Berth's own and stay here; without
 * keys they pass, unless the model server has a key that only Berth knows.
 */
export class UpstreamHeaders implements HeaderRules {
  readonly addedHeaders: readonly string[];
  private readonly hasKeys: () => boolean;

  /**
   * @param apiKey - the model server's own key; null: it has none
   * @param hasKeys - whether Berth asks for keys at this moment
   */
  constructor(apiKey: string | null, hasKeys: () => boolean) {
    this.hasKeys = hasKeys;
    this.addedHeaders = apiKey === null ? [] : ['Authorization', `Bearer ${apiKey}`];
  }

  get droppedHeaders(): ReadonlySet<string> {
    return this.hasKeys() || this.addedHeaders.length > 0 ? DROPPED : NONE;
  }
}

const DROPPED: ReadonlySet<string> = new Set(credentialHeaders);
const NONE: ReadonlySet<string> = new Set();

/**
 * A client's headers as they go to the model server, flat: end-to-end ones with order and spelling, the credential
 * that the rules choose, and the client's address at the end of `X-Forwarded-For`, as llama-swap's log shows it.
 */
export function headersUpstream(request: IncomingMessage, rules: HeaderRules): string[] {
  const drop = new Set([...rules.droppedHeaders, 'x-forwarded-for']);
  const peer = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const way = [...(request.headersDistinct['x-forwarded-for'] ?? []), peer].filter(Boolean);
  return [
    ...requestHeaders(request.rawHeaders, drop),
    ...(way.length === 0 ? [] : ['X-Forwarded-For', way.join(', ')]),
    ...rules.addedHeaders,
  ];
}
