import type * as z from 'zod';
import type { ConfigurationFault } from './configuration-error.ts';

const longestQuote = 60;

/** Puts one finding of the schema into the operator's words; values below `keys` are never repeated. */
export function describeIssue(issue: z.core.$ZodIssue): ConfigurationFault[] {
  const path = dotted(issue.path);
  const isKey = issue.path[0] === 'keys';
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      path: dotted([...issue.path, key]),
      what: 'unknown key',
    }));
  }
  if (issue.code === 'invalid_key') {
    return [
      { path, what: `no such name is possible: ${issue.issues[0]?.message ?? 'unreadable'}` },
    ];
  }
  if (issue.input === undefined) {
    const gone = isKey ? 'is missing' : 'cannot be removed with null';
    return [{ path, what: `${gone}: ${need(issue)} is needed` }];
  }
  const value = isKey ? 'its value' : quote(issue.input);
  return [{ path, what: `${value} will not do: ${need(issue)} is needed` }];
}

/** The path as it is written in messages: `leases.text.baseSeconds`, `keys.0.name`. */
export function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join('.') || 'BERTH_CONFIG';
}

function need(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type') return typeNames[issue.expected] ?? issue.expected;
  if (issue.code === 'invalid_value') return issue.values.map(String).join(' or ');
  if (issue.code === 'too_small') {
    return bound(issue.origin, issue.inclusive === false ? 'above' : 'of at least', issue.minimum);
  }
  if (issue.code === 'too_big') {
    return bound(issue.origin, issue.inclusive === false ? 'below' : 'of at most', issue.maximum);
  }
  return issue.message;
}

const typeNames: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'a text',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
};

function bound(origin: string, relation: string, limit: number | bigint): string {
  if (origin === 'string') return `a text ${relation} ${limit} characters`;
  if (origin === 'array') return `a list ${relation} ${limit} entries`;
  return `a number ${relation} ${limit}`;
}

function quote(value: unknown): string {
  const text = JSON.stringify(value);
  return text.length > longestQuote ? `${text.slice(0, longestQuote)}…` : text;
}
