import { createHash, timingSafeEqual } from 'node:crypto';

/** What a request's header may say instead of its key. */
export type Assertion = 'member' | 'tier';

/** What the ingress has to know of one configured key. */
export interface AccessKey {
  readonly name: string;
  /** Lower-case hex SHA-256 of the key's bytes. */
  readonly sha256: string;
  readonly member: string;
  readonly tier: string;
  /** Points of a request without a priority header. */
  readonly defaultPriority: number;
  /** Points; null: no ceiling. */
  readonly maxPriority: number | null;
  readonly mayAssert: readonly Assertion[];
  readonly isAdmin: boolean;
  /** Null: the general cap holds. */
  readonly waitingPerMember: number | null;
  readonly bytesPerMember: number | null;
}

interface Entry {
  key: AccessKey;
  digest: Buffer;
}

/** The keys of this moment; they change under a running gateway. */
export class KeyRing {
  private entries: readonly Entry[] = [];

  constructor(keys: readonly AccessKey[]) {
    this.replace(keys);
  }

  /** No keys: the gateway is open to its own machine. */
  get isEmpty(): boolean {
    return this.entries.length === 0;
  }

  /** From the next request on these keys hold, and no others. */
  replace(keys: readonly AccessKey[]): void {
    this.entries = keys.map((key) => ({ key, digest: Buffer.from(key.sha256, 'hex') }));
  }

  /**
   * The key that a client showed, as the bytes it sent. Every configured key is compared, each in constant time, so
   * that the time taken says nothing of how close a guess was or where in the list its key stands.
   */
  find(shown: Buffer): AccessKey | undefined {
    const digest = createHash('sha256').update(shown).digest();
    let found: AccessKey | undefined;
    for (const entry of this.entries) {
      const isSame = timingSafeEqual(entry.digest, digest);
      found = isSame ? entry.key : found;
    }
    return found;
  }
}
