/** Longest wait that a command takes on itself, in seconds; beyond it the person is told. */
const LONGEST_SECONDS = 120;

/**
 * Seconds to wait before a refused call is made again: what Retry-After says, in seconds or as a date. Undefined: do not
 * call again, because there is no such header, or it asks for more than two minutes.
 */
export function retryAfterSeconds(
  status: number,
  header: string | readonly string[] | undefined,
  nowMs: number,
): number | undefined {
  if (status !== 429 && status !== 503) return undefined;
  const text = (typeof header === 'string' ? header : header?.[0])?.trim();
  if (text === undefined || text === '') return undefined;
  const seconds = /^\d{1,9}$/.test(text)
    ? Number(text)
    : Math.ceil((Date.parse(text) - nowMs) / 1000);
  return Number.isNaN(seconds) || seconds > LONGEST_SECONDS ? undefined : Math.max(1, seconds);
}
