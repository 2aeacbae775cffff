import { readFileSync } from 'node:fs';
import type * as z from 'zod';
import { type ConfigurationFault } from './configuration-error.ts';
import { defaultDocument } from './default-document.ts';
import { describeIssue, dotted } from './describe-issue.ts';
import { documentSchema, type ConfigurationDocument } from './document-schema.ts';
import { documentFaults, ruleFaults } from './invariants.ts';
import { findJsonFault } from './json-syntax.ts';
import { isObject, mergeDocument, protoPaths, type JsonObject } from './merge-document.ts';
import { rulesShape } from './rules-schema.ts';

/** Either the effective document, or every fault found in the file. */
export type DocumentReading =
  | { readonly document: ConfigurationDocument; readonly faults: readonly [] }
  | { readonly document: null; readonly faults: readonly ConfigurationFault[] };

/** Reads the configuration file and lays it over the defaults; null: the defaults alone. */
export function readDocument(path: string | null): DocumentReading {
  if (path === null) return checkDocument({});
  let text;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return refuse(`${path} cannot be read: ${reasonOf(error)}`);
  }
  return readDocumentText(path, text);
}

/** Lays the text of the configuration file over the defaults. `path` is for the messages. */
export function readDocumentText(path: string, content: string): DocumentReading {
  const text = content.replace(/^\uFEFF/, '');
  const fault = findJsonFault(text);
  if (fault !== null) {
    return refuse(
      `${path} is not JSON: line ${fault.line}, column ${fault.column}: ${fault.expected} was expected`,
    );
  }
  const over: unknown = JSON.parse(text);
  return isObject(over) ? checkDocument(over) : refuse(`${path} holds no object`);
}

/** Merges what a file holds over the defaults and checks the result. */
export function checkDocument(over: JsonObject): DocumentReading {
  const merged = mergeDocument(defaultDocument, over);
  const parsed = documentSchema.safeParse(merged, { reportInput: true });
  const found = parsed.success
    ? documentFaults(parsed.data)
    : schemaFaults(parsed.error.issues, merged);
  const strangers = protoPaths(over)
    .map((path) => ({ path: dotted(path), what: 'unknown key' }))
    .filter(({ path }) => !found.some((fault) => fault.path === path));
  const faults = [...found, ...strangers];
  return parsed.success && faults.length === 0
    ? { document: parsed.data, faults: [] }
    : { document: null, faults };
}

/**
 * The schema's findings and, as long as the numbers are numbers, what they do to the order of jobs: the
 * schema's own refinements would stop at the first kind of fault.
 */
function schemaFaults(issues: z.core.$ZodIssue[], merged: JsonObject): ConfigurationFault[] {
  const found = issues.flatMap(describeIssue);
  const ofRules = issues.filter(({ path }) => String(path[0]) in rulesShape);
  if (!ofRules.every(isRangeFault)) return found;
  const said = (fault: ConfigurationFault) =>
    found.some(({ path }) => fault.what.startsWith(`${path} is `));
  const rules = merged as unknown as ConfigurationDocument;
  return [...found, ...ruleFaults(rules).filter((fault) => !said(fault))];
}

function isRangeFault(issue: z.core.$ZodIssue): boolean {
  if (issue.code === 'invalid_type')
    return issue.expected === 'int' && Number.isFinite(issue.input);
  return ['too_small', 'too_big', 'invalid_key', 'unrecognized_keys'].includes(issue.code);
}

function refuse(what: string): DocumentReading {
  return { document: null, faults: [{ path: 'BERTH_CONFIG', what }] };
}

function reasonOf(error: unknown): string {
  const { code = String(error) } = error as NodeJS.ErrnoException;
  const known: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: 'permission denied',
    EISDIR: 'it is a folder',
  };
  return known[code] ?? code;
}
