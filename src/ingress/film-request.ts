import * as z from 'zod';
import { GatewayError } from '../errors.ts';
import { isTooDeep, MOST_LEVELS } from '../gateway/json-depth.ts';
import { JSON_POINTER } from '../gateway/json-pointer.ts';

/** Most shots of one film. */
export const MOST_SHOTS = 10_000;
/** Longest request that makes a film, in bytes. */
export const FILM_BYTES = 64 * 1024 * 1024;

const pointer = z.string().max(1024).regex(JSON_POINTER, 'not a JSON Pointer (RFC 6901)');
const headerName = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'not the name of a header');
const headerValue = z
  .string()
  .max(8192)
  .regex(/^[\t\x20-\x7e\x80-\xff]*$/, 'not the value of a header');

/** A shot of the request that makes a film. */
export const askedShotSchema = z
  .strictObject({
    path: z
      .string()
      .min(1)
      .max(8192)
      .describe('Any path that a GPU works on, with its query.')
      .meta({ examples: ['/v1/images/generations'] }),
    method: z.enum(['POST', 'GET', 'PUT', 'PATCH', 'DELETE']).default('POST'),
    headers: z
      .record(headerName, headerValue)
      .default({})
      .describe('What goes along; the content is JSON unless it says otherwise.'),
    body: z.record(z.string(), z.unknown()).nullish(),
    take: z
      .array(
        z.strictObject({
          from: pointer.describe('Where the value stands in that result.'),
          to: pointer
            .min(1)
            .describe('Where it goes in this body; `/-` adds to the end of a list.'),
        }),
      )
      .max(100)
      .default([])
      .describe(
        'Values from the result before it, by JSON Pointer (RFC 6901); not of the first shot.',
      ),
  })
  .describe('A shot before it is a job.');

/** The request that makes a film. */
export const askedFilmSchema = z
  .strictObject({ shots: z.array(askedShotSchema).min(1).max(MOST_SHOTS) })
  .describe('A chain of requests of which one at a time waits or runs.');

/** One shot as it was asked for. */
export type AskedShot = z.infer<typeof askedShotSchema>;

/** Reads the request that makes a film. Throws GatewayError `bad_request` that names the field at fault. */
export function readFilm(bytes: Buffer): AskedShot[] {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString());
  } catch {
    throw new GatewayError('bad_request', 'the body is not JSON');
  }
  const { shots } = read(askedFilmSchema, json, 'body');
  for (const [index, each] of shots.entries()) checkShot(each, index === 0, `shots[${index}].`);
  return shots;
}

/** Reads one shot by the same rules, its fields named as its own: `path`, not `shots[0].path`. */
export function readShot(json: unknown, isFirst: boolean): AskedShot {
  const asked = read(askedShotSchema, json, 'shot');
  checkShot(asked, isFirst, '');
  return asked;
}

/** @param whole what is at fault when no field of it is */
function read<T>(schema: z.ZodType<T>, json: unknown, whole: string): T {
  const { success, data, error } = schema.safeParse(json);
  if (success) return data;
  const [issue] = error.issues;
  throw fault(fieldName(issue?.path ?? []) || whole, issue?.message ?? 'it cannot be read');
}

/** @param at where the shot is named in the request */
function checkShot({ take, body }: AskedShot, isFirst: boolean, at: string): void {
  if (isTooDeep(body)) throw fault(`${at}body`, `it has more than ${MOST_LEVELS} levels`);
  if (take.length === 0) return;
  if (isFirst) throw fault(`${at}take`, 'there is no result before the first shot');
  if (!isObject(body))
    throw fault(`${at}body`, 'a shot that takes values has a body to put them into');
}

/** A fault in a field of the request. */
export function fault(param: string, what: string): GatewayError {
  return new GatewayError('bad_request', `${param}: ${what}`, { param });
}

function fieldName(path: readonly PropertyKey[]): string {
  const name = path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('');
  return name.replace(/^\./, '');
}

const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null;
