import * as z from 'zod';
import type { QueueView, ShownRun, ShownWait } from '../../gateway/queue-view.ts';
import type { Score } from '../../policy/effective-priority.ts';
import { etaSchema, idSchema } from './job-schemas.ts';
import { schemaOf } from './schema-of.ts';

/** The number a job competes with. */
export const scoreSchema = schemaOf<Score>()(
  z
    .object({
      band: z.number().describe('The base priority.'),
      tier: z.number(),
      affinity: z.number().describe('For wanting the resident model.'),
      aging: z.number().describe('For waiting.'),
      effective: z.number().describe('The sum; the highest goes next.'),
    })
    .describe('The terms of a waiting job, in points.'),
);

const shown = z.object({
  id: idSchema.nullable(),
  member: z.string().nullable(),
  model: z.string().nullable(),
  tier: z.string(),
  band: z.string(),
  base_priority: z.number(),
});

/** The running job in the queue's view. */
export const runningSchema = schemaOf<ShownRun>()(
  shown
    .extend({
      state: z.literal('running'),
      started_at: z.number().describe('Unix seconds.'),
      running_seconds: z.number(),
      eta_seconds: etaSchema.describe('Until it ends.'),
    })
    .describe('The job that has the GPU.'),
);

/** A waiting job in the queue's view. */
export const waitingSchema = schemaOf<ShownWait>()(
  shown
    .extend({
      state: z.literal('waiting'),
      position: z.number().describe('1: next. May rise when better jobs arrive.'),
      score: scoreSchema,
      turn_seconds: z
        .number()
        .describe("GPU-seconds until its member's turn in the band; 0: it has come."),
      waited_seconds: z.number(),
      in_backoff: z.boolean().describe('Whether it waits out the backoff of a failed attempt.'),
      starts_in_seconds: etaSchema.describe('Until it starts.'),
      eta_seconds: etaSchema.describe('Until its answer is complete.'),
    })
    .describe('A waiting job at its place in the plan.'),
);

/** The plan. */
export const queueSchema = schemaOf<QueueView>()(
  z
    .object({
      as_of: z.number().describe('When the plan was made, in unix seconds.'),
      version: z.string().describe('Place in the journal of the queue at which it was made.'),
      resident_model: z.string().nullable(),
      running: runningSchema.nullable(),
      waiting_total: z.int().min(0).describe('How many jobs wait in all.'),
      waiting: z.array(waitingSchema).describe('The head of the plan, at most 10,000 jobs.'),
    })
    .describe(
      "The running job, then who goes when and why. Others' jobs show no id, member or model.",
    ),
);
