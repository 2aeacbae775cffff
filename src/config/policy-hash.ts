import { createHash } from 'node:crypto';
import type { BerthConfig } from './berth-config.ts';

/**
 * SHA-256, in lower-case hex, of everything the policy decides by. Two processes with the same hash order
 * jobs alike; the order of keys in the file makes no difference.
 */
export function policyHash(config: Pick<BerthConfig, 'rules'>): string {
  return createHash('sha256').update(canonicalJson(config.rules)).digest('hex');
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
