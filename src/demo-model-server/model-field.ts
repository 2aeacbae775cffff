import { readMultipart } from './multipart.ts';

/** What decides which model a request is for. */
export interface ModelQuestion {
  readonly method: string;
  readonly contentType: string;
  readonly query: URLSearchParams;
  readonly body: Buffer;
}

/**
 * The model a request names, as llama-swap finds it: GET by query; then by content type: a lenient look at the
 * JSON (broken JSON is no obstacle, the first of two equal keys wins), a form field (a query value goes before
 * it), else an urlencoded body or the query. Empty when there is none.
 */
export function findModelField(question: ModelQuestion): string {
  const { method, contentType, query, body } = question;
  const fromQuery = query.get('model') ?? '';
  if (method === 'GET' || method === 'HEAD') return fromQuery;
  if (contentType.includes('application/json')) return modelInJson(body);
  if (contentType.includes('multipart/form-data')) {
    if (fromQuery !== '') return fromQuery;
    const parts = readMultipart(body, contentType);
    return parts.find((part) => part.name === 'model')?.data.toString('utf8') ?? '';
  }
  if (contentType.includes('application/x-www-form-urlencoded')) {
    const form = new URLSearchParams(body.toString('utf8')).get('model');
    if (form !== null) return form;
  }
  return fromQuery;
}

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
const openers = Buffer.from('{[');
const closers = Buffer.from('}]');
const blanks = Buffer.from(' \t\r\n');

/** The value of the first top-level `model` key as a string; empty when there is none. */
function modelInJson(json: Buffer): string {
  let depth = 0;
  let key: string | undefined;
  let isValue = false;
  for (let at = 0; at < json.length;) {
    const sign = json[at] ?? 0;
    const end = wordEnd(json, at);
    const isWord = end > at + 1 || sign === quote || !isPunctuation(sign);
    if (depth === 1 && isValue && key === 'model' && !blanks.includes(sign)) {
      return isWord ? scalar(json.toString('utf8', at, end)) : '';
    }
    if (openers.includes(sign)) depth += 1;
    else if (closers.includes(sign)) depth -= 1;
    else if (depth === 1 && sign === colon) isValue = true;
    else if (depth === 1 && sign === comma) isValue = false;
    else if (depth === 1 && sign === quote && !isValue)
      key = scalar(json.toString('utf8', at, end));
    at = end;
  }
  return '';
}

/** Where the string, sign, blank or bare word that begins at `at` ends. */
function wordEnd(json: Buffer, at: number): number {
  if (json[at] === quote) return stringEnd(json, at);
  if (isPunctuation(json[at] ?? 0)) return at + 1;
  let end = at + 1;
  while (end < json.length && json[end] !== quote && !isPunctuation(json[end] ?? 0)) end += 1;
  return end;
}

/** One past the closing quote; strings of many megabytes are leapt over. */
function stringEnd(json: Buffer, at: number): number {
  let closing = at;
  for (;;) {
    closing = json.indexOf(quote, closing + 1);
    if (closing === -1) return json.length;
    let before = closing - 1;
    while (json[before] === backslash) before -= 1;
    if ((closing - before) % 2 === 1) return closing + 1;
  }
}

function isPunctuation(sign: number): boolean {
  return (
    sign === colon ||
    sign === comma ||
    openers.includes(sign) ||
    closers.includes(sign) ||
    blanks.includes(sign)
  );
}

function scalar(word: string): string {
  if (word === 'null') return '';
  if (!word.startsWith('"')) return word;
  try {
    return String(JSON.parse(word));
  } catch {
    return word.slice(1, -1);
  }
}
