/**
 * How a job can end. Nothing follows an outcome.
 *
 * - completed: the model server's answer was taken whole, whatever its status.
 * - failed: the lease lapsed, the model server failed, or the body was lost.
 * - cancelled: by DELETE, waiting or running, or its client left while it ran.
 * - evicted: its client left while it waited.
 * - expired: its start deadline passed while it waited.
 */
export const outcomes = ['completed', 'failed', 'cancelled', 'evicted', 'expired'] as const;

/** One of the terminal outcomes. */
export type Outcome = (typeof outcomes)[number];

/** Every state a job can be in; a job starts waiting, and goes back there when an attempt is handed back. */
export const states = ['waiting', 'running', ...outcomes] as const;

/** One of the states of a job. */
export type JobState = (typeof states)[number];
