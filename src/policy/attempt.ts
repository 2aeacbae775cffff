/** How failed attempts are repeated. */
export interface AttemptRules {
  /** Attempts a job gets in all, at least 1. */
  readonly maxAttempts: number;
  /** Backoff before the second attempt, in ms; it doubles with each further one. */
  readonly firstBackoffMs: number;
  /** Longest backoff, in ms. */
  readonly maxBackoffMs: number;
}

/** What is known of a failed attempt. */
export interface FailedAttempt {
  /** Attempts used up, this one included. */
  readonly attempt: number;
  /** Whether a byte of an answer may have been seen by the client or a reader: then nothing is repeated. */
  readonly delivered: boolean;
  /** Milliseconds the model server asked to wait (`Retry-After`), if it did. */
  readonly askedMs?: number;
}

/** Repeat after a time, or end the job. */
export type AttemptVerdict = { readonly retryAfterMs: number } | 'give-up';

/**
 * After a failed attempt that could be repeated. `chance` in [0, 1) spreads repeats by a quarter of the backoff, so
 * that jobs which failed together do not come back together.
 */
export function afterFailedAttempt(
  failed: FailedAttempt,
  rules: AttemptRules,
  chance: number,
): AttemptVerdict {
  if (failed.delivered || failed.attempt >= rules.maxAttempts) return 'give-up';
  const doubled = rules.firstBackoffMs * 2 ** (failed.attempt - 1);
  const backoff = Math.min(rules.maxBackoffMs, Math.max(doubled, failed.askedMs ?? 0));
  return { retryAfterMs: Math.round(backoff * (1 + chance / 4)) };
}
