import * as z from 'zod';

const below = z
  .string()
  .max(512)
  .regex(/^\/(?:upstream|comfyui)\/\S+$/, 'a path below /upstream/ or /comfyui/');
const path = z.string().min(1).max(512);
const pointer = z.string().max(512).regex(/^\/./, 'a JSON Pointer');

const cancelSchema = z.strictObject({
  path: path.describe('Where to POST it.'),
  body: z.string().max(4096).describe('The JSON to POST.'),
});

/** One entry of `asyncUpstreams`: a route that answers before its work is done. */
export const asyncUpstreamSchema = z.strictObject({
  path: below.describe('Path of the submitting POST; `*` is one or more segments.'),
  load: path
    .optional()
    .describe('Path to GET before, for a model that `path` itself may not load.'),
  idPointer: pointer.describe('JSON Pointer to the id in the submit answer.'),
  poll: path.describe('Path that tells how the work stands; `{id}` is the id.'),
  donePointer: pointer.describe('JSON Pointer into its answer to what is there once it is done.'),
  errorPointer: pointer.optional().describe('JSON Pointer to what tells a failure.'),
  errorValue: z.string().max(256).optional().describe('What stands there then; any if left out.'),
  pending: path.optional().describe('Path that names the id for as long as it waits or runs.'),
  cancel: z.array(cancelSchema).max(8).optional().describe('What to POST to stop the work.'),
  pollSeconds: z.number().min(0.05).max(600).describe('Time between two polls.'),
  timeoutSeconds: z.number().positive().max(86_400).describe('Longest work; then it is stopped.'),
});
