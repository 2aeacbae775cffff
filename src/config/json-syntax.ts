/** Where a text stops being JSON; both count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  readonly expected: string;
}

const blank = /[ \t\r\n]*/y;
const literal = /true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
// eslint-disable-next-line no-control-regex -- JSON strings may not hold control characters
const string = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const deepest = 200;

class Unexpected extends Error {
  readonly offset: number;

  constructor(offset: number, expected: string) {
    super(expected);
    this.offset = offset;
  }
}

/**
 * Finds where a text stops being JSON; null when it is JSON. `JSON.parse` does not always say where, and
 * quotes the text, which may hold secrets.
 */
export function findJsonFault(text: string): JsonFault | null {
  try {
    const end = skip(text, readValue(text, skip(text, 0), 0));
    if (end < text.length) throw new Unexpected(end, 'the end of the file');
    return null;
  } catch (error) {
    if (!(error instanceof Unexpected)) throw error;
    const before = text.slice(0, error.offset).split('\n');
    return {
      line: before.length,
      column: (before.at(-1) ?? '').length + 1,
      expected: error.message,
    };
  }
}

function readValue(text: string, at: number, depth: number): number {
  if (depth > deepest) throw new Unexpected(at, `at most ${deepest} levels`);
  if (text[at] === '{') return readObject(text, at + 1, depth);
  if (text[at] === '[')
    return readList(text, at + 1, ']', (from) => readValue(text, from, depth + 1));
  return match(literal, text, at) ?? match(string, text, at) ?? refuse(at, 'a value');
}

function readObject(text: string, at: number, depth: number): number {
  return readList(text, at, '}', (from) => {
    const key = skip(text, match(string, text, from) ?? refuse(from, 'a quoted key'));
    if (text[key] !== ':') refuse(key, 'a colon');
    return readValue(text, skip(text, key + 1), depth + 1);
  });
}

function readList(text: string, at: number, close: string, item: (from: number) => number): number {
  let here = skip(text, at);
  if (text[here] === close) return here + 1;
  for (;;) {
    here = skip(text, item(here));
    if (text[here] === close) return here + 1;
    if (text[here] !== ',') refuse(here, `a comma or ${close}`);
    here = skip(text, here + 1);
  }
}

function skip(text: string, at: number): number {
  return match(blank, text, at) ?? at;
}

function match(pattern: RegExp, text: string, at: number): number | undefined {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

function refuse(offset: number, expected: string): never {
  throw new Unexpected(offset, expected);
}
