import * as z from 'zod';
import type { AgingClock, Explanation, TimelinePiece } from '../../gateway/explanation.ts';
import type { JobAhead } from '../../gateway/jobs-ahead.ts';
import { reasonsToWait } from '../../gateway/wait-timeline.ts';
import { reasonsAhead } from '../../gateway/why-ahead.ts';
import { etaSchema, idSchema, jobStateSchema } from './job-schemas.ts';
import { scoreSchema } from './queue-schemas.ts';
import { schemaOf } from './schema-of.ts';

const reasonAheadSchema = z
  .enum(reasonsAhead)
  .describe(
    'The first that puts it there. running: it has the GPU. higher_band, aged_band: its band is higher, or lower but has ' +
      "waited so long that it claims more. fair_turn: it is its member's turn. base, tier, affinity: more points in the same " +
      "band, by priority, tier or as the loaded model's. earlier: alike in all of these, it came first.",
  );

const reasonToWaitSchema = z
  .enum(reasonsToWait)
  .describe(
    'Behind a job that went ahead, and why (as in `ahead`; running: it ran when this one came), or: swap: the load of a ' +
      'model for a job ahead. paused: its film was paused. ended: it had ended, until it was tried again. recovery: an attempt ' +
      'of its own that was repeated, or nothing ran. dispatch: it was handed to the model server. unrecorded: not known any more.',
  );

const clockSchema = schemaOf<AgingClock>()(
  z
    .object({
      band_seconds: z.number().describe('Waiting that counts against other bands.'),
      turn_seconds: z
        .number()
        .describe("GPU-seconds until its member's turn in the band; 0: it has come."),
      waited_seconds: z.number().describe('Since it arrived, or arrived anew.'),
      because: z
        .enum(['arrival', 'band_served'])
        .describe('From when waiting counts: its arrival, or later, since its band was served.'),
    })
    .describe('What its waiting has earned it.'),
);

const aheadSchema = schemaOf<JobAhead>()(
  z.object({
    job: z.string().describe('Its id, or "another member\'s job".'),
    because: reasonAheadSchema,
    seconds: z.number().describe('How long it will take, half of the time at most.'),
  }),
);

const pieceSchema = schemaOf<TimelinePiece>()(
  z.object({
    from: z.number().describe('Unix seconds.'),
    to: z.number().describe('Unix seconds; the next piece begins here.'),
    seconds: z.number(),
    because: reasonToWaitSchema,
    runs: z.int().min(0).describe('Runs, or loads, of jobs ahead that it is made of.'),
  }),
);

/** Why a job waits, or waited. */
export const explanationSchema = schemaOf<Explanation>()(
  z
    .object({
      id: idSchema,
      object: z.literal('explanation'),
      state: jobStateSchema,
      as_of: z.number().describe('Unix seconds.'),
      summary: z.string().describe('The rest in a few sentences.'),
      score: scoreSchema
        .nullable()
        .describe('Its terms now while it waits, else at its last dispatch; null: not known.'),
      clock: clockSchema.nullable(),
      position: z
        .int()
        .min(1)
        .nullable()
        .describe('1: next. Null: it does not wait, or no plan names it yet.'),
      eta: etaSchema.nullable().describe('Until its answer is complete.'),
      ahead: z
        .array(aheadSchema)
        .describe(
          'Who goes before it, soonest first; at most 100 that wait, and the one that runs.',
        ),
      ahead_total: z.int().min(0),
      wait_seconds: z
        .number()
        .describe('From its submission to its last dispatch, to its end without one, or to now.'),
      timeline: z.array(pieceSchema).describe('That wait in pieces that lie end to end.'),
      totals: z
        .partialRecord(z.enum(reasonsToWait), z.number())
        .describe('What the pieces of each reason come to, in seconds.'),
    })
    .describe('Why a job waits, or waited.'),
);
