import type * as z from 'zod';
import { LONGEST_MEMBER } from '../identity.ts';
import { inlineSchema } from './component-schemas.ts';
import type { Json } from './component-schemas.ts';
import {
  cancelAfterHeader,
  idempotencyKeyHeader,
  startDeadlineHeader,
  streamPlaceHeader,
} from './request-headers.ts';

const text = (more: Json = {}): Json => ({ type: 'string', ...more });

/** A header of a request; `schema` may bring its own description. */
function header(name: string, schema: Json, description?: string): Json {
  const { description: own, ...rest } = schema;
  return { name, in: 'header', required: false, description: description ?? own, schema: rest };
}

/** Headers about who a request is for and how urgent it is; keys are names of components. */
const priorityParameters = {
  LlamaSwapPriority: header(
    'X-LlamaSwap-Priority',
    text({ examples: ['0', '-98', 'interactive', 'batch'] }),
    'The base priority in points: any integer, or the name of a band. Higher goes sooner; 0 is normal. One that cannot be ' +
      'read means 0. The first of the priority headers that is there counts.',
  ),
  Priority: header(
    'X-Priority',
    text({ examples: ['10', 'elevated', 'low'] }),
    'The same in steps of `xPriorityUnit` points: elevated 10, normal 0, low -10. Counts without `X-LlamaSwap-Priority`.',
  ),
  Intent: header(
    'X-Berth-Intent',
    text({ examples: ['image', 'film-shot', 'scheduled'] }),
    'What the work is for; `intents` of the configuration gives it a band. Counts without the other two.',
  ),
  Member: header(
    'X-Berth-Member',
    text({ maxLength: LONGEST_MEMBER }),
    'Who the request is for. Believed of keys that may assert it, and of everybody while there are no keys; ignored otherwise.',
  ),
  Tier: header(
    'X-Berth-Tier',
    text(),
    'The tier of that member, likewise; one that is not known is the lowest.',
  ),
} as const;

/** Headers about a job's answer and end. */
const jobParameters = {
  Prefer: header(
    'Prefer',
    text({ examples: ['respond-async', 'respond-async, wait=30'] }),
    '`respond-async`: 202 with the job as soon as it is durable; it then ignores disconnects. `wait=n` beside it: the ' +
      'answer itself if it is there within n seconds. What cannot be read does not count (RFC 7240).',
  ),
  IdempotencyKey: header('Idempotency-Key', inlineSchema(idempotencyKeyHeader)),
  StartDeadline: header('X-Berth-Start-Deadline', {
    ...inlineSchema(startDeadlineHeader),
    examples: ['90', '2026-12-31T18:00:00Z'],
  }),
  CancelAfter: header('Cancel-After', {
    ...inlineSchema(cancelAfterHeader),
    examples: ['90', '15m'],
  }),
  Webhook: header(
    'X-Berth-Webhook',
    text({ format: 'uri', maxLength: 2048 }),
    'An http:// or https:// address that is told of the end of the job; see the webhook `jobEnded`. One that Berth would ' +
      'not call is a 400.',
  ),
} as const;

/** Parameters of several operations. */
export const sharedParameters = {
  ...priorityParameters,
  ...jobParameters,
  JobId: {
    ...{ name: 'id', in: 'path', required: true, description: 'The id of a job.' },
    schema: { type: 'string', format: 'uuid' },
  },
  FilmId: {
    ...{ name: 'id', in: 'path', required: true, description: 'The id of a film.' },
    schema: { type: 'string', format: 'uuid' },
  },
  IfNoneMatch: header(
    'If-None-Match',
    text(),
    'Tags the client knows; 304 while one of them still holds.',
  ),
  Range: header(
    'Range',
    text({ examples: ['bytes=0-1023'] }),
    'One range of bytes of a completed answer (RFC 9110).',
  ),
  StreamPlace: header('Last-Event-ID', inlineSchema(streamPlaceHeader)),
  EventPlace: header(
    'Last-Event-ID',
    text({ pattern: String.raw`^\d{1,9}-\d{1,15}$` }),
    'The last event the client has seen; it gets those after it.',
  ),
} as const satisfies Record<string, Json>;

/** References to shared parameters. */
export const shared = (...names: readonly (keyof typeof sharedParameters)[]): Json[] =>
  names.map((name) => ({ $ref: `#/components/parameters/${name}` }));

const names = (record: object) => Object.keys(record) as (keyof typeof sharedParameters)[];

/** What says how urgent a request is. */
export const priorityHeaders: readonly Json[] = shared(...names(priorityParameters));

/** What any request for the GPU takes. */
export const gpuHeaders: readonly Json[] = [...priorityHeaders, ...shared(...names(jobParameters))];

/** The parameters of a query, by the schema that reads it. */
export function queryParameters(schema: z.ZodObject): Json[] {
  return Object.entries(schema.shape).map(([name, field]) => {
    const { description, ...rest } = inlineSchema(field as z.ZodType);
    const style = rest.type === 'array' ? { style: 'form', explode: false } : {};
    return { name, in: 'query', required: false, description, ...style, schema: rest };
  });
}
