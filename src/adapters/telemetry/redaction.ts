import type { LogFields } from '../../ports/logger.ts';

const hidden = '[hidden]';
/** Names of fields that hold a credential or a client's words. */
const secretName =
  /authorization|cookie|passw|secret|credential|sha256|(?:api|access|private)[-_]?key|token$|^(?:key|prompt|answer|body|headers)$/i;
const longestText = 1000;
const deepest = 4;

/**
 * Makes fields fit for the log: hides what looks like a credential by its name or shape, cuts long texts and
 * deep values, and reduces an error to name, message, code, stack and cause (a Redis error carries its
 * command's arguments, which may be a body).
 */
export function redact(fields: LogFields): Record<string, unknown> {
  return redactEntries(fields, 0);
}

function redactEntries(value: object, depth: number): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const hasContent = typeof inner === 'string' || (typeof inner === 'object' && inner !== null);
      return [name, hasContent && secretName.test(name) ? hidden : redactValue(inner, depth + 1)];
    }),
  );
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Error) return describeError(value, depth);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth > deepest) return '[deeper]';
  return Array.isArray(value)
    ? value.slice(0, longestText).map((item) => redactValue(item, depth + 1))
    : redactEntries(value, depth);
}

function describeError(error: Error, depth: number): Record<string, unknown> {
  const code = 'code' in error ? { code: error.code } : {};
  const cause =
    error.cause === undefined || depth > deepest
      ? {}
      : { cause: redactValue(error.cause, depth + 1) };
  return {
    name: error.name,
    message: redactText(error.message),
    ...code,
    ...cause,
    stack: redactText(error.stack ?? '', 4 * longestText),
  };
}

function redactText(text: string, longest = longestText): string {
  const shown = text.length > longest ? `${text.slice(0, longest)}…` : text;
  return shown
    .replace(/\b(bearer|basic)\s+[^\s"',]+/gi, `$1 ${hidden}`)
    .replace(/(:\/\/)[^\s/@]*@/g, `$1${hidden}@`);
}
