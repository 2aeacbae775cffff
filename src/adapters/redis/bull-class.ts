/** BullMQ's number for zero points: the middle of what it accepts (1 to 2^21 - 1). */
const MIDDLE = 1_048_576;
/** Numbers a point is worth: fractions of a point down to 0.02 still order jobs. */
const STEPS_PER_POINT = 50;

/**
 * BullMQ's priority number of a job with these points. BullMQ runs smaller numbers first, we run more points first.
 * Always within 2..2097151: 0 would jump every queue, 1 is kept free. Points beyond about +-20,900 tie.
 */
export function bullClass(points: number): number {
  const exact = MIDDLE - Math.round(points * STEPS_PER_POINT);
  return Math.min(2_097_151, Math.max(2, exact));
}
