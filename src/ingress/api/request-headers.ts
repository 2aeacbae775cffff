import * as z from 'zod';

/** Latest deadline from now, in ms. */
const LONGEST_MS = 366 * 86_400_000;
const LONGEST_KEY = 255;
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const SECONDS = /^\d{1,12}(?:\.\d{1,3})?$/;
const SECONDS_OR_TIME =
  /^(?:\d{1,12}(?:\.\d{1,3})?|\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d))$/;
const DURATION = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)?$/;
const PLACE = /^(?:(\d{1,9})-)?(\d{1,15})$/;

const KEY_FAULT = `has 1 to ${LONGEST_KEY} characters`;
const START_FAULT = 'is a number of seconds above 0, or a time of RFC 3339';
const DURATION_FAULT = 'is a number of seconds above 0, or one with a unit: 90s, 15m, 2h, 1d';

const isInTime = (ms: number): boolean => ms > 0 && ms <= LONGEST_MS;

/** `Idempotency-Key`. */
export const idempotencyKeyHeader = z
  .string()
  .min(1, KEY_FAULT)
  .max(LONGEST_KEY, KEY_FAULT)
  .describe(
    'Requests of one member with the same key and body are one job, until 24 hours after its end ' +
      '(`retention.idempotencySeconds`). A repeat gets the answer from its first byte.',
  );

/** `X-Berth-Start-Deadline`: ms from the submission, or unix ms. */
export const startDeadlineHeader = z
  .string()
  .regex(SECONDS_OR_TIME, START_FAULT)
  .transform((text, context): { withinMs: number } | { byMs: number } => {
    if (SECONDS.test(text)) {
      const withinMs = Math.round(Number(text) * 1000);
      if (isInTime(Number(text) * 1000)) return { withinMs };
    } else {
      const byMs = Date.parse(text.replace(' ', 'T'));
      if (byMs <= Date.now() + LONGEST_MS) return { byMs };
    }
    context.addIssue(START_FAULT);
    return z.NEVER;
  })
  .describe(
    'The job expires unless it has started: so many seconds from now, or at a time (RFC 3339).',
  );

/** `Cancel-After`, in ms. */
export const cancelAfterHeader = z
  .string()
  .regex(DURATION, DURATION_FAULT)
  .transform((text, context) => {
    const [, number, unit = 's'] = DURATION.exec(text) ?? [];
    const ms = Math.round(Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS]);
    if (isInTime(ms)) return ms;
    context.addIssue(DURATION_FAULT);
    return z.NEVER;
  })
  .describe(
    'The job is cancelled, waiting or running, so long from now: seconds, or with a unit (ms, s, m, h, d).',
  );

/** `Last-Event-ID` of a stream of an answer. */
export const streamPlaceHeader = z
  .string()
  .regex(PLACE, 'names no place in this answer')
  .transform((text) => {
    const [, run, offset] = PLACE.exec(text) ?? [];
    return { run: run === undefined ? undefined : Number(run), offset: Number(offset) };
  })
  .describe('Where the client stands: `offset`, or `run-offset`, in body bytes.');
