import { bullClass } from '../src/adapters/redis/bull-class.ts';
import { MODEL } from './model-server.ts';

/** A queue with one worker, as the measurements see it. */
export interface MeasuredQueue {
  /** Goes along as `x-bench`, so that the model server knows whose request arrives. */
  readonly lane: string;
  /** Adds one job; durable when it resolves. */
  submit(): Promise<void>;
  /** Jobs that wait. */
  waiting(): Promise<number>;
}

/** A kilobyte of chat, the same for both queues. */
export const JOB_BODY = JSON.stringify({
  model: MODEL,
  messages: [{ role: 'user', content: 'x'.repeat(950) }],
});

const POINTS = [-100, 0, 100] as const;

/** Points of the n-th job: three bands in turn. */
export const jobPoints = (count: number): number => POINTS[count % POINTS.length] ?? 0;

/** BullMQ's number for the same job, so that both queues order alike. */
export const jobPriority = (count: number): number => bullClass(jobPoints(count));

/** Flat headers of a job's request. */
export const jobHeaders = (lane: string): string[] => [
  'content-type',
  'application/json',
  'x-bench',
  lane,
];
