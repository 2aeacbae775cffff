import { credentialHeaders } from './shown-key.ts';
import type { HeaderRules } from './submission.ts';

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
