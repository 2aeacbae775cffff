import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { lookup } from 'mime-types';
import { CommandError } from './command-error.ts';

/** What is asked for, as the command line says it. */
export interface SubmitOptions {
  readonly model?: string;
  /** JSON, `@file` or `-` (standard input). */
  readonly data?: string;
  /** `name=value` or `name=@file`, any number of them. */
  readonly form?: readonly string[];
  /** `Name: value`. */
  readonly header?: readonly string[];
  readonly intent?: string;
  readonly priority?: string;
  readonly tier?: string;
  readonly deadline?: string;
  readonly webhook?: string;
}

/** A request to be sent. */
export interface SubmitRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const NAMED = {
  intent: 'x-berth-intent',
  priority: 'x-llamaswap-priority',
  tier: 'x-berth-tier',
  deadline: 'x-berth-start-deadline',
  webhook: 'x-berth-webhook',
} as const;

/** Headers that say how urgent it is, until when, and who is told. Throws CommandError for one that cannot be. */
export function headersOf(options: SubmitOptions): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of options.header ?? []) {
    const [, name, value = ''] =
      /^([!#$%&'*+.^_`|~\w-]+):\s*([\t\x20-\x7e\x80-\xff]*)$/.exec(line) ?? [];
    if (name === undefined)
      throw new CommandError(`--header: "Name: value" is needed, not ${line}`);
    headers[name.toLowerCase()] = value.trim();
  }
  for (const [option, header] of Object.entries(NAMED)) {
    const value = options[option as keyof typeof NAMED];
    if (value === undefined) continue;
    // Berth counts a priority that it cannot read as 0; here somebody is there to be told.
    if (option === 'priority' && !/^(?:[+-]?\d{1,5}|[a-z][a-z-]*)$/i.test(value))
      throw new CommandError('--priority: a whole number or the name of a band is needed');
    if (!/^[\x20-\x7e]+$/.test(value)) throw new CommandError(`--${option}: plain text is needed`);
    headers[header] = value;
  }
  return headers;
}

/**
 * The request that the options describe: JSON, or a form when `--form` is given. The same options give the same bytes.
 *
 * @param readAll what a file holds; `-` is standard input
 */
export function submitRequest(
  options: SubmitOptions,
  readAll: (file: string) => Buffer = readInput,
): SubmitRequest {
  const headers = headersOf(options);
  const { form = [], data, model } = options;
  if (form.length > 0) {
    if (data !== undefined) throw new CommandError('--data and --form exclude each other');
    const fields = [...(model === undefined ? [] : [`model=${model}`]), ...form];
    const { boundary, body } = multipart(fields.map((field) => partOf(field, readAll)));
    return {
      headers: { ...headers, 'content-type': `multipart/form-data; boundary=${boundary}` },
      body,
    };
  }
  const given = data === undefined ? Buffer.from('{}') : bytesOf(data, readAll);
  const type = headers['content-type'] ?? 'application/json';
  const body = /^application\/json\b/i.test(type) ? jsonBody(given, model) : given;
  if (body === given && model !== undefined && !/^application\/json\b/i.test(type))
    throw new CommandError('--model goes into JSON or a form; --data is neither');
  return { headers: { ...headers, 'content-type': type }, body };
}

/** The bytes as they are, unless a model goes into them. */
function jsonBody(given: Buffer, model: string | undefined): Buffer {
  let json: unknown;
  try {
    json = JSON.parse(given.toString());
  } catch (error) {
    throw new CommandError(`--data is not JSON: ${(error as Error).message}`);
  }
  if (model === undefined) return given;
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new CommandError('--data is no JSON object that could name a model');
  return Buffer.from(JSON.stringify({ ...json, model }));
}

function bytesOf(data: string, readAll: (file: string) => Buffer): Buffer {
  if (data === '-') return readAll('-');
  return data.startsWith('@') ? readAll(data.slice(1)) : Buffer.from(data);
}

function readInput(file: string): Buffer {
  try {
    return readFileSync(file === '-' ? 0 : file);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    throw new CommandError(`${file === '-' ? 'standard input' : file} cannot be read: ${code}`);
  }
}

interface Part {
  readonly head: string;
  readonly content: Buffer;
}

function partOf(field: string, readAll: (file: string) => Buffer): Part {
  const at = field.indexOf('=');
  if (at < 1) throw new CommandError(`--form: name=value or name=@file is needed, not ${field}`);
  const [name, value] = [quoted(field.slice(0, at)), field.slice(at + 1)];
  const disposition = `Content-Disposition: form-data; name="${name}"`;
  if (!value.startsWith('@')) return { head: disposition, content: Buffer.from(value) };
  const file = value.slice(1);
  const type = lookup(file) || 'application/octet-stream';
  return {
    head: `${disposition}; filename="${quoted(path.basename(file))}"\r\nContent-Type: ${type}`,
    content: readAll(file),
  };
}

/** As browsers write names in a form. */
const quoted = (text: string): string =>
  text.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');

/** The boundary follows from the content: an Idempotency-Key stands for the same bytes every time. */
function multipart(parts: readonly Part[]): { boundary: string; body: Buffer } {
  const hash = createHash('sha256');
  for (const { head, content } of parts)
    hash.update(`${head}\0${content.length}\0`).update(content);
  const boundary = `berth-${hash.digest('hex').slice(0, 40)}`;
  const pieces = parts.flatMap(({ head, content }) => [
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    content,
    Buffer.from('\r\n'),
  ]);
  return { boundary, body: Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]) };
}
