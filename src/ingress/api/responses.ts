import type { ErrorCode } from '../../errors.ts';
import { errorCodes, errorTable, shownCode } from '../error-table.ts';
import { refTo } from './component-schemas.ts';
import type { ComponentName, Json } from './component-schemas.ts';
import { errorMeanings } from './error-schemas.ts';

/** Headers of answers. */
export const sharedHeaders = {
  JobId: { description: 'The id of the job.', schema: { type: 'string', format: 'uuid' } },
  Band: { description: 'The named band nearest to its base priority.', schema: { type: 'string' } },
  Priority: {
    description: 'Its base priority in points, after floor and ceiling.',
    schema: { type: 'integer' },
  },
  ServerTiming: {
    description: '`queue;dur=` and the milliseconds the job waited.',
    schema: { type: 'string' },
  },
  RetryAfter: {
    description: 'Seconds after which a repeat makes sense.',
    schema: { type: 'integer', minimum: 1, maximum: 3600 },
  },
  JobLocation: { description: 'Path of the job.', schema: { type: 'string' } },
  FilmLocation: { description: 'Path of the film.', schema: { type: 'string' } },
  PreferenceApplied: {
    description: 'What of `Prefer` was followed.',
    schema: { type: 'string', examples: ['respond-async'] },
  },
  ETag: { description: 'Changes with the job and its place.', schema: { type: 'string' } },
  AcceptRanges: { description: '`bytes`, of a whole answer.', schema: { type: 'string' } },
  ContentRange: { description: 'Which part it is, of how many bytes.', schema: { type: 'string' } },
} as const satisfies Record<string, Json>;

const header = (name: keyof typeof sharedHeaders): Json => ({
  $ref: `#/components/headers/${name}`,
});

/** Headers of an answer, by their names on the wire. */
export const headers = (
  named: Readonly<Record<string, keyof typeof sharedHeaders>>,
): Record<string, Json> =>
  Object.fromEntries(Object.entries(named).map(([wire, name]) => [wire, header(name)]));

/** What every answer for a job says of it. */
export const jobHeaders = {
  'X-Berth-Job-Id': 'JobId',
  'X-Berth-Band': 'Band',
  'X-Berth-Priority': 'Priority',
} as const;

/** An answer with JSON of a named schema. */
export const json = (description: string, name: ComponentName, more: Json = {}): Json => ({
  description,
  ...more,
  content: { 'application/json': { schema: refTo(name) } },
});

/** A stream of server-sent events; `events`: the schema of each event's data. */
export const eventStream = (
  description: string,
  events: Readonly<Record<string, ComponentName>>,
): Json => ({
  description,
  content: {
    'text/event-stream': {
      schema: { type: 'string' },
      'x-event-data': Object.fromEntries(
        Object.entries(events).map(([event, name]) => [event, refTo(name)]),
      ),
    },
  },
});

/** Codes that clients are answered with. */
const sent = errorCodes.filter((code) => code !== 'client_closed' && shownCode(code) === code);

/** For each status of an error its answer, with an example for each code. */
export function errorResponses(): Record<string, Json> {
  const statuses = [...new Set(sent.map((code) => errorTable[code].status))];
  return Object.fromEntries(
    statuses.map((status) => [
      `Error${status}`,
      errorResponse(sent.filter((code) => errorTable[code].status === status)),
    ]),
  );
}

function errorResponse(codes: readonly ErrorCode[]): Json {
  const mayRetry = codes.some((code) => errorTable[code].retryAfter !== undefined);
  const form = { schema: { type: 'string' } };
  return {
    description: codes.map((code) => `\`${code}\`: ${errorMeanings[code]}`).join('\n\n'),
    ...(mayRetry ? { headers: headers({ 'Retry-After': 'RetryAfter' }) } : {}),
    content: {
      'application/json': {
        schema: refTo('Error'),
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
      'text/plain': form,
      'text/html': form,
    },
  };
}

const exampleOf = (code: ErrorCode): Json => ({
  src: 'berth',
  error: { message: errorMeanings[code], type: errorTable[code].type, param: null, code },
});

/** Every request that needs a key can come to these. */
const ALWAYS = [400, 401, 403, 500, 503];

/** The errors of an operation: those of these statuses, and those of any. */
export const errors = (...statuses: readonly number[]): Record<string, Json> =>
  Object.fromEntries(
    [...new Set([...ALWAYS, ...statuses])]
      .toSorted((one, other) => one - other)
      .map((status) => [String(status), { $ref: `#/components/responses/Error${status}` }]),
  );

/** The closed list as a table. */
export const errorList = (): string =>
  [
    '| code | status | meaning |',
    '| --- | --- | --- |',
    ...errorCodes.map(
      (code) => `| \`${code}\` | ${errorTable[code].status} | ${errorMeanings[code]} |`,
    ),
  ].join('\n');
