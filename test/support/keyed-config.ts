import { createHash } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** An entry of `keys` without its hash: in tests the key is `key-of-<name>`. */
export type TestKey = { readonly name: string } & Readonly<Record<string, unknown>>;

/** The key that stands behind an entry. */
export const secretOf = (name: string): string => `key-of-${name}`;

/** A configuration file of a test. */
export interface KeyedConfig {
  readonly file: string;
  /** Puts a file with these keys in its place. */
  write: (keys: readonly TestKey[], rest?: object) => void;
  remove: () => void;
}

/** Writes a configuration file with keys into a folder of its own. */
export function keyedConfig(keys: readonly TestKey[], rest: object = {}): KeyedConfig {
  const folder = mkdtempSync(path.join(tmpdir(), 'berth-config-'));
  const file = path.join(folder, 'berth.json');
  const write: KeyedConfig['write'] = (list, others = rest) => {
    const entries = list.map((key) => ({
      sha256: createHash('sha256').update(secretOf(key.name)).digest('hex'),
      ...key,
    }));
    writeFileSync(`${file}.new`, JSON.stringify({ ...others, keys: entries }));
    renameSync(`${file}.new`, file);
  };
  write(keys);
  return { file, write, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
