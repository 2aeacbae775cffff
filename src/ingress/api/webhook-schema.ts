import * as z from 'zod';
import type { JobEvent } from '../../gateway/job-event.ts';
import { outcomes } from '../../policy/outcome.ts';
import { jobSchema } from './job-schemas.ts';
import { schemaOf } from './schema-of.ts';

const { id, object, model, route, member, tier, band, base_priority, error } = jobSchema.shape;
const wholeSeconds = z.int().describe('Unix seconds.');

/** What is posted to the address of `X-Berth-Webhook`. */
export const jobEventSchema = schemaOf<JobEvent>()(
  z
    .object({
      type: z.enum(outcomes.map((outcome) => `job.${outcome}` as const)),
      timestamp: z.string().meta({ format: 'date-time' }).describe('The end of the job.'),
      data: z
        .object({
          ...{
            id,
            object,
            state: z.enum(outcomes),
            model,
            route,
            member,
            tier,
            band,
            base_priority,
          },
          film: z
            .object({ id: z.uuid(), shot: z.int().min(1) })
            .nullable()
            .describe('Of a shot: its film, and its place there.'),
          created_at: wholeSeconds,
          started_at: wholeSeconds.nullable(),
          completed_at: wholeSeconds,
          attempts: z.int().min(0),
          error,
          urls: z.object({ self: z.string(), result: z.string() }),
          metrics: z.object({ queue_seconds: z.number(), gpu_seconds: z.number() }),
        })
        .describe('Nothing of the request and nothing of the answer.'),
    })
    .describe('The end of a job, the same text at every attempt.'),
);
