import type { MeasuredQueue } from './measured-queue.ts';

const IN_FLIGHT = 64;

/** Submits `count` jobs, 64 at a time; returns jobs accepted per second. */
export async function timeAcceptance(queue: MeasuredQueue, count: number): Promise<number> {
  let left = count;
  const startedAt = performance.now();
  const submitter = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await queue.submit();
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, submitter));
  return count / ((performance.now() - startedAt) / 1000);
}
