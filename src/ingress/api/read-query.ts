import type { IncomingMessage } from 'node:http';
import * as z from 'zod';
import { GatewayError } from '../../errors.ts';

const WHOLE = 'is a whole number from 0 on';

/** A parameter that is a whole number from 0 on. */
export const wholeParameter = z.preprocess(
  (text) => (typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : text),
  z.int({ error: WHOLE }).min(0, { error: WHOLE }),
);

/** A parameter that is one of some words. */
export const wordParameter = <const Words extends readonly string[]>(words: Words) =>
  z.enum(words, { error: `is one of ${words.join(', ')}` });

/** A parameter that is a list of words with commas. */
export const wordsParameter = <const Words extends readonly string[]>(words: Words) =>
  z.preprocess(
    (text) => (typeof text === 'string' ? text.split(',').map((word) => word.trim()) : text),
    z.array(z.enum(words, { error: `is one or more of ${words.join(', ')}` })),
  );

/**
 * The query of a request of Berth's own, by the schema that the documentation shows. An empty parameter counts as
 * absent, one that the schema does not know is ignored. Every fault is a GatewayError `bad_request` naming the parameter.
 */
export function readQuery<Shape extends z.ZodRawShape>(
  request: IncomingMessage & { originalUrl?: string },
  schema: z.ZodObject<Shape>,
): z.output<z.ZodObject<Shape>> {
  const target = request.originalUrl ?? request.url ?? '/';
  const query = new URLSearchParams(/\?(.*)$/s.exec(target)?.[1] ?? '');
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const [value = '', ...others] = query.getAll(name);
    if (others.length > 0) throw bad(name, 'came more than once');
    if (value !== '') given[name] = value;
  }
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw bad(String(issue?.path[0]), issue?.message ?? 'cannot be read');
}

const bad = (name: string, what: string): GatewayError =>
  new GatewayError('bad_request', `the parameter ${name} ${what}`, { param: name });
