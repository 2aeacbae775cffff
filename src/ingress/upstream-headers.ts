import type { IncomingMessage } from 'node:http';
import { requestHeaders } from '../gateway/headers.ts';
import { credentialHeaders } from './shown-key.ts';

/** What happens to a client's headers on their way to the model server. */
export interface HeaderRules {
  /** Lower-case names of client headers that do not go upstream. */
  droppedHeaders: ReadonlySet<string>;
  /** Flat headers put in for the model server. */
  addedHeaders: readonly string[];
  /** Proxies in front of Berth whose word for the client's address counts (TRUST_PROXY). */
  trustedHops: number;
}

/**
 * Which credential goes to the model server. With keys configured the client's are Berth's own and stay here; without
 * keys they pass, unless the model server has a key that only Berth knows.
 */
export class UpstreamHeaders implements HeaderRules {
  readonly addedHeaders: readonly string[];
  readonly trustedHops: number;
  private readonly hasKeys: () => boolean;

  /**
   * @param apiKey - the model server's own key; null: it has none
   * @param hasKeys - whether Berth asks for keys at this moment
   * @param trustedHops - proxies in front of Berth
   */
  constructor(apiKey: string | null, hasKeys: () => boolean, trustedHops = 0) {
    this.hasKeys = hasKeys;
    this.trustedHops = trustedHops;
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
 * that the rules choose, and the client's address in `X-Forwarded-For`, as llama-swap's log shows it. Each trusted proxy
 * in front adds one address; whatever stands before those the client may have made up, and goes no further.
 */
export function headersUpstream(request: IncomingMessage, rules: HeaderRules): string[] {
  const peer = (request.socket.remoteAddress ?? '').replace(/^::ffff:/, '');
  const claimed = (request.headersDistinct['x-forwarded-for'] ?? []).flatMap(addresses);
  const trusted = rules.trustedHops === 0 ? [] : claimed.slice(-rules.trustedHops);
  const way = [...trusted, peer].filter(Boolean);
  return [
    ...ownHeadersUpstream(request.rawHeaders, rules),
    ...(way.length === 0 ? [] : ['X-Forwarded-For', way.join(', ')]),
    ...rules.addedHeaders,
  ];
}

/**
 * Of a request's own headers, flat, those that go to the model server: not the credentials Berth keeps, not the address
 * of a webhook, and not what Berth did itself and nobody behind it is to do again.
 */
export function ownHeadersUpstream(flat: readonly string[], rules: HeaderRules): string[] {
  const drop = new Set([...rules.droppedHeaders, 'x-forwarded-for', 'x-berth-webhook']);
  const prefers = flat.filter((_, at) => at % 2 === 1 && flat[at - 1]?.toLowerCase() === 'prefer');
  if (prefers.some((value) => /respond-async/i.test(value))) drop.add('prefer');
  return requestHeaders(flat, drop);
}

const addresses = (list: string): string[] =>
  list
    .split(',')
    .map((each) => each.trim())
    .filter(Boolean);
