import type { BerthConfig } from './berth-config.ts';
import { keyRule, type KeyRule } from './key-schema.ts';
import { opennessFaults } from './openness.ts';
import { readDocumentText } from './read-document.ts';

/** Either the keys of the file, or every fault found in it as one line each. */
export type KeyReading =
  | { readonly keys: readonly KeyRule[]; readonly faults: readonly [] }
  | { readonly keys: null; readonly faults: readonly string[] };

/**
 * The keys of the configuration file's present text. They count only when Berth would start with the whole file: one
 * that is broken elsewhere may be half written, and one without keys must not open what other machines reach.
 */
export function readKeys(path: string, text: string, config: BerthConfig): KeyReading {
  const { document, faults } = readDocumentText(path, text);
  const all = document === null ? faults : opennessFaults(config.source.environment, document);
  return document === null || all.length > 0
    ? { keys: null, faults: all.map(({ path: at, what }) => `${at}: ${what}`) }
    : { keys: document.keys.map(keyRule), faults: [] };
}
