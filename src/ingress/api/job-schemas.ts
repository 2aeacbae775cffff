import * as z from 'zod';
import type { JobObject } from '../../gateway/job-object.ts';
import type { StoryEvent } from '../../gateway/job-story.ts';
import type { EtaSeconds } from '../../gateway/queue-view.ts';
import { states } from '../../policy/outcome.ts';
import { schemaOf } from './schema-of.ts';

/** Ids of jobs and films. */
export const idSchema = z.uuid({ version: 'v4' }).describe('A lower-case UUIDv4.');

/** A range of seconds. */
export const etaSchema = schemaOf<EtaSeconds>()(
  z
    .object({
      p50: z.number().describe('Half of the time it takes at most so long.'),
      p90: z.number().describe('Nine times in ten it takes at most so long.'),
    })
    .describe('A range of seconds.'),
);

/** Every state of a job. */
export const jobStateSchema = z
  .enum(states)
  .describe(
    'completed: the answer of the model server was taken whole, whatever its status. failed: the lease lapsed, the model ' +
      'server failed, or the request was lost. cancelled: by DELETE or `Cancel-After`, or its client left while it ran. ' +
      'evicted: its client left while it waited. expired: its start deadline passed.',
  );

const secondsOrNull = z.number().nullable();
const unixTime = z.number().describe('Unix seconds.');
const pathTo = (what: string): z.ZodString => z.string().describe(`Path of ${what}.`);

/** A job. */
export const jobSchema = schemaOf<JobObject>()(
  z
    .object({
      id: idSchema,
      object: z.literal('job'),
      state: jobStateSchema,
      model: z.string().describe("The model's own id, not an alias."),
      route: z.string().describe('The route of the request, as a pattern.'),
      member: z.string().describe('Who the job is for.'),
      tier: z.string(),
      band: z.string().describe('The named band nearest to the base priority.'),
      base_priority: z.int().describe('Points, after floor and ceiling; higher goes sooner.'),
      created_at: unixTime,
      started_at: unixTime.nullable().describe('The last dispatch, in unix seconds.'),
      completed_at: unixTime.nullable().describe('Its end, whatever it was, in unix seconds.'),
      expires_at: unixTime.nullable().describe('When job and answer are forgotten.'),
      position: z
        .int()
        .min(1)
        .nullable()
        .describe(
          '1: next. May rise when better jobs arrive. Null: it does not wait, or no plan names it yet.',
        ),
      eta_seconds: etaSchema.nullable().describe('Until its answer is complete.'),
      attempts: z
        .int()
        .min(0)
        .describe('Attempts begun; one handed back at a shutdown does not count.'),
      lease: z
        .record(z.string(), z.unknown())
        .nullable()
        .describe('What the worker last said of the right to run it.'),
      error: z
        .object({ code: z.string().describe('A code of `ErrorCode`.'), message: z.string() })
        .nullable()
        .describe('Why it ended otherwise than completed.'),
      urls: z
        .object({
          self: pathTo('the job'),
          result: pathTo('its answer'),
          events: pathTo('its event stream'),
          explain: pathTo('its explanation'),
          stream: pathTo('its answer while it comes'),
        })
        .describe("Relative to the gateway's origin."),
      metrics: z
        .object({
          queue_seconds: secondsOrNull.describe(
            'From submission to the last dispatch, or to the end without one.',
          ),
          swap_seconds: secondsOrNull.describe(
            'Part of the GPU time in which the model was loaded.',
          ),
          gpu_seconds: secondsOrNull.describe(
            'GPU time of the last attempt, the load it forced included.',
          ),
        })
        .describe('Null: not known yet.'),
    })
    .describe('A job as its client sees it. Times are unix seconds.'),
);

/** A page of jobs. */
export const jobListSchema = z
  .object({
    object: z.literal('list'),
    data: z.array(jobSchema),
    has_more: z.boolean().describe('Whether older ones may follow.'),
    next_cursor: z.string().nullable().describe('The `cursor` to read on with.'),
  })
  .describe('Jobs, newest first. A page may hold fewer than `limit` although more follow.');

/** A page of jobs. */
export type JobList = z.infer<typeof jobListSchema>;

type EventData<Name extends StoryEvent['name']> = Extract<StoryEvent, { name: Name }>['data'];

/** Data of the event `state`. */
export const stateEventSchema = schemaOf<EventData<'state'>>()(
  z
    .object({
      id: idSchema,
      state: jobStateSchema,
      at: secondsOrNull.describe('Unix seconds; null: not known.'),
      job: jobSchema.exactOptional(),
    })
    .describe('The job came to a state; `job` is there for the one it is in.'),
);

/** Data of the event `position`. */
export const positionEventSchema = schemaOf<EventData<'position'>>()(
  z
    .object({
      position: z.number().describe('1: next. May rise when better jobs arrive.'),
      eta_seconds: etaSchema,
    })
    .describe('Where the job waits.'),
);

/** Data of the event `progress`. */
export const progressEventSchema = schemaOf<EventData<'progress'>>()(
  z
    .object({
      bytes: z.number().describe('Body bytes of the answer so far.'),
      eta_seconds: etaSchema.nullable(),
    })
    .describe('How far the answer of the running job has come.'),
);
