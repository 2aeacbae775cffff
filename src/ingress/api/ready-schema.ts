import * as z from 'zod';

/** One thing readyz looks at. */
export const readyCheckSchema = z.object({
  name: z.string(),
  ok: z.boolean(),
  detail: z.string().describe('What is wrong and what to do, or what is right.'),
  isWarning: z.boolean().exactOptional().describe('A warning leaves the gateway ready.'),
});

/** Whether jobs can be taken. */
export const readySchema = z
  .object({ ready: z.boolean(), checks: z.array(readyCheckSchema) })
  .describe('Whether jobs can be taken, and what was looked at.');

/** One thing readyz looks at. */
export type ReadyCheck = z.infer<typeof readyCheckSchema>;

/** Whether jobs can be taken. */
export type Readiness = z.infer<typeof readySchema>;
