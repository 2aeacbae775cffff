import type { MeasuredQueue } from './measured-queue.ts';

/** Submits `count` jobs, `inFlight` at a time; returns jobs accepted per second. */
export async function timeAcceptance(
  queue: Pick<MeasuredQueue, 'submit'>,
  count: number,
  inFlight = 64,
): Promise<number> {
  let left = count;
  const startedAt = performance.now();
  const submitter = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await queue.submit();
    }
  };
  await Promise.all(Array.from({ length: inFlight }, submitter));
  return count / ((performance.now() - startedAt) / 1000);
}
