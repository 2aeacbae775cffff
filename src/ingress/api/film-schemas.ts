import * as z from 'zod';
import type { FilmObject, FilmSummary, ShotObject } from '../../gateway/film-view.ts';
import { etaSchema, idSchema } from './job-schemas.ts';
import { schemaOf } from './schema-of.ts';

/** A shot of a film. */
export const shotSchema = schemaOf<ShotObject>()(
  z
    .object({
      shot: z.int().min(1),
      state: z
        .string()
        .describe(
          'pending (no job yet), waiting, running, paused, skipped, or what became of its job.',
        ),
      job_id: idSchema.nullable(),
      tries: z.int().min(0).describe('How often it was tried, repeats after a failure counted.'),
      urls: z
        .object({ self: z.string(), result: z.string() })
        .nullable()
        .describe('Its job, and the answer of that.'),
    })
    .describe('A shot as the producer of the film sees it; shots count from 1.'),
);

const summary = z.object({
  id: idSchema,
  object: z.literal('film'),
  state: z
    .enum(['waiting', 'running', 'paused', 'failed', 'completed', 'cancelled'])
    .describe('running: exactly one of its shots waits or runs; waiting: and none has run yet.'),
  member: z.string().describe('Who the film is for.'),
  done: z.int().min(0).describe('Shots that are over.'),
  total: z.int().min(1),
  shot: z.int().min(1).nullable().describe('The shot it stands at; null when it is over.'),
  job_id: idSchema.nullable().describe('The job of that shot.'),
  reason: z.string().nullable().describe('Why it stands still; null while it does not.'),
  created_at: z.number().describe('Unix seconds.'),
  eta_seconds: etaSchema.nullable().describe('Until its last shot is done; null: cannot be told.'),
  urls: z.object({ self: z.string(), events: z.string() }),
});

/** A film without its shots. */
export const filmSummarySchema = schemaOf<FilmSummary>()(
  summary.describe('A film without its shots; the data of the event `film`.'),
);

/** A film with its shots. */
export const filmSchema = schemaOf<FilmObject>()(
  summary.extend({ shots: z.array(shotSchema) }).describe('A film with all its shots.'),
);

/** The newest films. */
export const filmListSchema = z
  .object({ object: z.literal('list'), data: z.array(filmSummarySchema) })
  .describe('The newest hundred films, newest first.');

/** The newest films. */
export type FilmList = z.infer<typeof filmListSchema>;
