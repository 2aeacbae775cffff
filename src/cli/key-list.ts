import { createHash, randomBytes } from 'node:crypto';
import type * as z from 'zod';
import { keyRule, type keySchema } from '../config/key-schema.ts';
import { CommandError } from './command-error.ts';
import { textTable } from './text-table.ts';

/** One entry of `keys`, as it stands in the configuration file. */
export type KeyEntry = z.input<typeof keySchema>;

/** A change of the list that cannot be made; the message is one line for the operator. */
export class KeyListError extends CommandError {}

/** A new key: `berth_` and 32 random bytes. It is shown once and stored nowhere. */
export function newKey(): string {
  return `berth_${randomBytes(32).toString('base64url')}`;
}

/** The entry that stands for a key; `settings` are those of the entry, without the ones left out. */
export function keyEntry(
  name: string,
  key: string,
  settings: Omit<KeyEntry, 'name' | 'sha256'>,
): KeyEntry {
  return { name, sha256: createHash('sha256').update(key).digest('hex'), ...settings };
}

/** The list with one more entry. Throws KeyListError when the name is taken. */
export function withKey(entries: readonly KeyEntry[], entry: KeyEntry): KeyEntry[] {
  if (entries.some(({ name }) => name === entry.name))
    throw new KeyListError(`there is a key called ${entry.name} already; remove it first`);
  return [...entries, entry];
}

/** The list without one entry. Throws KeyListError when there is none of that name. */
export function withoutKey(entries: readonly KeyEntry[], name: string): KeyEntry[] {
  const left = entries.filter((entry) => entry.name !== name);
  if (left.length === entries.length) throw new KeyListError(`there is no key called ${name}`);
  return left;
}

/** The list as a table, one line a key, with what was left out filled in; no hash is shown. */
export function keyTable(entries: readonly KeyEntry[]): string {
  const head = ['NAME', 'MEMBER', 'TIER', 'DEFAULT', 'CEILING', 'MAY ASSERT', 'ADMIN'];
  const rows = entries
    .map(keyRule)
    .map((key) => [
      key.name,
      key.member,
      key.tier,
      String(key.defaultPriority),
      String(key.maxPriority ?? 'none'),
      key.mayAssert.join(',') || '-',
      key.isAdmin ? 'yes' : 'no',
    ]);
  return textTable(head, rows);
}
