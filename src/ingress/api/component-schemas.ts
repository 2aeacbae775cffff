import * as z from 'zod';
import { askedFilmSchema, askedShotSchema } from '../film-request.ts';
import { errorCodeSchema, errorSchema } from './error-schemas.ts';
import { explanationSchema } from './explanation-schema.ts';
import { filmListSchema, filmSchema, filmSummarySchema, shotSchema } from './film-schemas.ts';
import {
  etaSchema,
  jobListSchema,
  jobSchema,
  jobStateSchema,
  positionEventSchema,
  progressEventSchema,
  stateEventSchema,
} from './job-schemas.ts';
import { queueSchema, runningSchema, scoreSchema, waitingSchema } from './queue-schemas.ts';
import { readySchema } from './ready-schema.ts';
import { jobEventSchema } from './webhook-schema.ts';

const named = {
  Job: jobSchema,
  JobState: jobStateSchema,
  JobList: jobListSchema,
  StateEvent: stateEventSchema,
  PositionEvent: positionEventSchema,
  ProgressEvent: progressEventSchema,
  EtaSeconds: etaSchema,
  Explanation: explanationSchema,
  FilmRequest: askedFilmSchema,
  ShotRequest: askedShotSchema,
  Film: filmSchema,
  FilmSummary: filmSummarySchema,
  FilmList: filmListSchema,
  Shot: shotSchema,
  Queue: queueSchema,
  RunningJob: runningSchema,
  WaitingJob: waitingSchema,
  Score: scoreSchema,
  Readiness: readySchema,
  JobEvent: jobEventSchema,
  Error: errorSchema,
  ErrorCode: errorCodeSchema,
} as const satisfies Record<string, z.ZodType>;

/** Name of a schema of the document. */
export type ComponentName = keyof typeof named;

/** A JSON Schema, or a part of the document. */
export type Json = Record<string, unknown>;

/** Zod's whole numbers say how far JavaScript counts, which is no limit of an interface. */
function override({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
}

/** A reference to a schema of the document. */
export const refTo = (name: ComponentName): Json => ({ $ref: `#/components/schemas/${name}` });

/** The schemas of the document by their names. What is answered may gain fields, so it is open; requests are not. */
export function componentSchemas(): Record<string, Json> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, {
    io: 'input',
    uri: (id) => `#/components/schemas/${id}`,
    override,
  });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutIdentity(schema)]),
  );
}

/** The schema of one value of a request, as a client sends it. */
export function inlineSchema(schema: z.ZodType): Json {
  return withoutIdentity(z.toJSONSchema(schema, { io: 'input', override }));
}

/** Without what the document says as a whole: its dialect, and the place of each schema. */
function withoutIdentity(schema: z.core.JSONSchema.BaseSchema): Json {
  const said = ['$schema', '$id', '~standard'];
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !said.includes(key)));
}
