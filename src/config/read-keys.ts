import { keyRule, type KeyRule } from './key-schema.ts';
import { readDocumentText } from './read-document.ts';

/** Either the keys of the file, or every fault found in it as one line each. */
export type KeyReading =
  | { readonly keys: readonly KeyRule[]; readonly faults: readonly [] }
  | { readonly keys: null; readonly faults: readonly string[] };

/**
 * The keys of the configuration file's present text. They count only when the whole file is right: one that is broken
 * elsewhere may be half written. `path` is for the messages.
 */
export function readKeys(path: string, text: string): KeyReading {
  const { document, faults } = readDocumentText(path, text);
  return document === null
    ? { keys: null, faults: faults.map(({ path: at, what }) => `${at}: ${what}`) }
    : { keys: document.keys.map(keyRule), faults: [] };
}
