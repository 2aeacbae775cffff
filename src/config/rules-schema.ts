import * as z from 'zod';
import { baseBound } from '../policy/rules.ts';

/** Names in the configuration: bands, tiers, intents. Lower case, so that a header can be matched in any case. */
export const nameSchema = z
  .string()
  .regex(
    /^[a-z][a-z0-9-]{0,31}$/,
    'a lower-case letter, then at most 31 letters, digits and dashes',
  );

const priority = z.int().min(-baseBound).max(baseBound);
const bonus = z.int().min(0).max(baseBound);

const tierSchema = z.strictObject({
  bonus: bonus.describe('Points added to each job of the tier.'),
  weight: z
    .number()
    .positive()
    .max(1000)
    .describe('Share of the GPU against other members of the band under lasting contention.'),
});

const holdSchema = z.strictObject({
  seconds: z
    .number()
    .min(0)
    .max(60)
    .describe('Longest wait for the next job of a member whose last one has just ended.'),
  share: z.number().min(0).max(1).describe('The same, as a share of the run that has just ended.'),
});

const agingSchema = z.strictObject({
  divisorSeconds: z
    .number()
    .min(0.001)
    .max(1_000_000)
    .describe('Seconds of waiting that earn one point, and GPU-seconds one point buys in a turn.'),
  clock: z
    .enum(['band', 'job'])
    .describe('Whose clock ages between bands; `job` is the literal rule and starves fresh chats.'),
  charge: z
    .number()
    .positive()
    .max(1_000_000)
    .describe('Seconds a run moves its band clock for each GPU-second used; above the band count.'),
  hold: holdSchema.describe('How long a finished producer is waited for.'),
});

/** The part of the configuration file that decides the order of jobs; `checkRules` holds its invariants. */
export const rulesShape = {
  bands: z
    .record(nameSchema, priority)
    .describe('Base priority of each named band, in points; higher goes first.'),
  tiers: z.record(nameSchema, tierSchema).describe('Service classes of members.'),
  affinity: z
    .strictObject({ bonus: bonus.describe('Points for a job whose model is resident.') })
    .describe('What wanting the resident model is worth.'),
  aging: agingSchema.describe('How waiting earns points.'),
  intents: z
    .record(nameSchema, nameSchema)
    .describe('Band of each intent that `X-Berth-Intent` may name.'),
  xPriorityUnit: z
    .int()
    .min(1)
    .max(baseBound)
    .describe('Points that one step of `X-Priority` is worth.'),
  modelFloors: z
    .record(z.string().min(1).max(256), priority)
    .describe('Least priority of a model, in steps of `X-Priority`.'),
};
