import * as z from 'zod';
import { states } from '../../policy/outcome.ts';
import { wholeParameter, wordParameter, wordsParameter } from './read-query.ts';

const PAGE = 20;
const LARGEST_PAGE = 100;
/** Longest wait for a change, in seconds. */
const LONGEST_WAIT_SECONDS = 60;

/** The query of `GET /berth/jobs`; `bands`: the configured ones. */
export const jobListQuery = (bands: readonly string[]) =>
  z.object({
    state: wordsParameter(states).optional().describe('Only jobs in one of these states.'),
    model: z.string().optional().describe('Only jobs of this model, by its own id.'),
    band: wordParameter(bands).optional().describe('Only jobs of this band.'),
    member: z
      .string()
      .optional()
      .describe("Only jobs of this member; counts for an administrator, who sees everybody's."),
    limit: wholeParameter
      .transform((limit) => Math.min(LARGEST_PAGE, Math.max(1, limit)))
      .prefault(PAGE)
      .describe(`Most jobs in a page; more than ${LARGEST_PAGE} count as that.`),
    cursor: wholeParameter.optional().describe('`next_cursor` of the page before.'),
  });

/** The query of `GET /berth/jobs/{id}`. */
export const jobQuery = z.object({
  wait: wholeParameter
    .transform((seconds) => Math.min(LONGEST_WAIT_SECONDS, seconds))
    .prefault(0)
    .describe(
      `Seconds to wait for another state; more than ${LONGEST_WAIT_SECONDS} count as that. A client that shows by ` +
        '`If-None-Match` that it knows another state is answered at once.',
    ),
});

/** The query of `GET /berth/jobs/{id}/stream`. */
export const jobStreamQuery = z.object({
  offset: wholeParameter
    .optional()
    .describe('Body bytes that the client has; goes before `Last-Event-ID`.'),
});
