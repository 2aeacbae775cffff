import * as z from 'zod';
import { asyncUpstreamSchema } from './async-upstream-schema.ts';
import { keySchema } from './key-schema.ts';
import { rulesShape } from './rules-schema.ts';

const day = 86_400;
const seconds = z.number().positive().max(day);
const bytes = z.int().min(1);

const attemptsSchema = z.strictObject({
  most: z.int().min(1).max(100).describe('Attempts in all.'),
  firstBackoffSeconds: seconds.describe(
    'Wait before the second attempt; it doubles with each further one.',
  ),
  longestBackoffSeconds: seconds.describe('Longest wait, also where `Retry-After` asks for more.'),
});

const mediaLeaseSchema = z.strictObject({
  defaultSeconds: seconds.describe('Term until 20 runs of the model and route are known.'),
  capSeconds: seconds.describe('Longest term.'),
});

const leasesSchema = z.strictObject({
  text: z
    .strictObject({
      baseSeconds: seconds.describe('Term from dispatch, and from each piece that adds output.'),
      preparationSeconds: seconds.describe('Part of the term set aside for reading the prompt.'),
      coldLoadSeconds: seconds.describe(
        'Added while the model loads, until its load time is known.',
      ),
      capTrustedSeconds: seconds.describe('Longest run on a trusted worker, from dispatch.'),
      capUntrustedSeconds: seconds.describe('Longest run on any other worker, from dispatch.'),
    })
    .describe('Leases of text jobs.'),
  image: mediaLeaseSchema.describe('Leases of image jobs.'),
  audio: mediaLeaseSchema.describe('Leases of audio jobs.'),
  video: mediaLeaseSchema.describe('Leases of video jobs.'),
  unmeasuredTokensPerSecond: z
    .number()
    .positive()
    .max(1_000_000)
    .describe('Speed assumed of a model until its completed jobs show one.'),
  stalePassSeconds: seconds.describe('How often lapsed leases the worker missed are looked for.'),
  restarts: z.int().min(0).max(10).describe('Restarts of a job whose lease lapsed undelivered.'),
});

const durationSchema = z.strictObject({
  p50Seconds: seconds.describe('Half take at most so long.'),
  p90Seconds: seconds.describe('Nine in ten take at most so long.'),
});

const durationsSchema = z.strictObject({
  text: durationSchema.describe('Text jobs.'),
  image: durationSchema.describe('Image jobs.'),
  audio: durationSchema.describe('Audio jobs.'),
  video: durationSchema.describe('Video jobs.'),
  other: durationSchema.describe('Jobs of any other kind.'),
  loadSeconds: durationSchema.describe('Loading a model; comes on top of a job that needs it.'),
  models: z
    .record(z.string().min(1).max(256), durationSchema)
    .describe('Jobs of single models, by their own id, not an alias.'),
});

/** The whole configuration file after it was merged over the defaults. */
export const documentSchema = z.strictObject({
  $schema: z
    .string()
    .optional()
    .describe('Where an editor finds the JSON Schema; Berth ignores it.'),
  ...rulesShape,
  bypass: z
    .strictObject({
      models: z.array(z.string().min(1).max(256)).describe('Models that need no GPU.'),
      concurrency: z.int().min(1).max(1000).describe('Their requests upstream at one time.'),
    })
    .describe('What skips the queue.'),
  asyncUpstreams: z
    .array(asyncUpstreamSchema)
    .max(100)
    .describe('Routes that answer before their work is done.'),
  attempts: attemptsSchema.describe('How often a job is tried that the model server failed at.'),
  leases: leasesSchema.describe('How long a job may hold the GPU without progress.'),
  durations: durationsSchema.describe(
    'How long jobs are assumed to take until enough of them were measured.',
  ),
  worker: z
    .strictObject({
      name: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'a text of 1 to 64 letters, digits and . _ -')
        .describe('What logs and the owner record call the GPU worker.'),
      trusted: z.boolean().describe('Whether its text leases get the trusted cap.'),
      maintenanceAfterStaleAborts: z
        .int()
        .min(1)
        .nullable()
        .default(null)
        .describe('Stale aborts an hour after which it stops taking work; null: never.'),
    })
    .describe('The GPU worker.'),
  caps: z
    .strictObject({
      waitingPerMember: z.int().min(1).describe('Waiting jobs of one member.'),
      bytesPerMember: bytes.describe('Bytes of request bodies one member may have waiting.'),
      waiting: z.int().min(1).describe('Waiting jobs of all members.'),
      bodyBytes: bytes.describe('Largest request body, also after decoding.'),
    })
    .describe('When a request is refused; without keys `waiting` alone holds.'),
  idempotency: z
    .strictObject({
      graceSeconds: seconds.describe('How long a job with a key outlives its connection.'),
    })
    .describe('Idempotency-Key.'),
  keepAlive: z
    .strictObject({
      afterSeconds: seconds.describe('Silence before the first sign of life to a waiting stream.'),
      everySeconds: seconds.describe('Between the signs after it.'),
      style: z
        .enum(['off', 'comments', 'reasoning'])
        .describe("None, SSE comments, or llama-swap's reasoning frames."),
    })
    .describe('What a waiting streaming client sees.'),
  retention: z
    .strictObject({
      syncSeconds: retentionSeconds().describe('An answer whose client was connected.'),
      completedSeconds: retentionSeconds().describe('A completed asynchronous job and its answer.'),
      failedSeconds: retentionSeconds().describe('A failed job with its request body.'),
      idempotencySeconds: retentionSeconds().describe('An idempotency key, after the end.'),
      dispatchRecords: z.int().min(1).max(10_000_000).describe('Dispatch records kept.'),
    })
    .describe('How long things are kept.'),
  memory: z
    .strictObject({
      admitBelowFraction: z
        .number()
        .positive()
        .max(1)
        .describe("Share of Redis's maxmemory from which on jobs are refused."),
    })
    .describe('Admission by memory.'),
  keys: z.array(keySchema).max(10_000).describe('Who may use Berth; empty: loopback only.'),
});

/** The configuration file after merge and check, as it was written. */
export type ConfigurationDocument = z.output<typeof documentSchema>;

function retentionSeconds(): z.ZodNumber {
  return z
    .number()
    .positive()
    .max(366 * day);
}
