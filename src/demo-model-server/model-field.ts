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
  if (contentType.includes('application/json')) return modelInJson(body.toString('utf8'));
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

const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gs;

/** The value of the first top-level `model` key as a string; empty when there is none. */
function modelInJson(text: string): string {
  let depth = 0;
  let key: string | undefined;
  let isValue = false;
  for (const [word] of text.matchAll(token)) {
    if (depth === 1 && isValue && key === 'model') return scalar(word);
    if (word === '{' || word === '[') depth += 1;
    else if (word === '}' || word === ']') depth -= 1;
    if (depth !== 1) continue;
    if (word === ':') isValue = true;
    else if (word === ',' || word === '{') isValue = false;
    else if (!isValue) key = scalar(word);
  }
  return '';
}

function scalar(word: string): string {
  if (word === 'null' || word === '{' || word === '[') return '';
  if (!word.startsWith('"')) return word;
  try {
    return String(JSON.parse(word));
  } catch {
    return word.slice(1, -1);
  }
}
