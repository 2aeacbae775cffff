const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 5000;
/** A process that lived this long starts afresh in the eyes of the policy. */
const GOOD_LIFE_MS = 60_000;
/** This many deaths within a minute and it is not started again. */
const DEATHS_TOO_MANY = 5;
const MINUTE_MS = 60_000;

/** What becomes of a process that died: when it is started again, or that it is not. */
export type Verdict = { readonly restartAfterMs: number } | 'give_up';

/** The memory of one process's deaths. */
export interface RestartPolicy {
  /**
   * Judges a death. Waits double from 0.1 s to 5 s and begin again after a life of a minute; the fifth
   * death within a minute ends it.
   *
   * @param nowMs monotonic, in milliseconds.
   * @param livedMs from the start of the process to its death.
   */
  afterDeath(nowMs: number, livedMs: number): Verdict;
}

/** A policy that has seen no death yet. */
export function restartPolicy(): RestartPolicy {
  let recentDeaths: number[] = [];
  let delayMs = FIRST_DELAY_MS;
  return {
    afterDeath(nowMs, livedMs) {
      recentDeaths = [...recentDeaths.filter((diedMs) => nowMs - diedMs < MINUTE_MS), nowMs];
      if (recentDeaths.length >= DEATHS_TOO_MANY) return 'give_up';
      if (livedMs >= GOOD_LIFE_MS) delayMs = FIRST_DELAY_MS;
      const restartAfterMs = delayMs;
      delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS);
      return { restartAfterMs };
    },
  };
}
