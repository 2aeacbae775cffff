import { ArrivalQueue } from './arrival-queue.ts';
import type { Front } from './effective-priority.ts';
import { byArrival, type WaitingJob } from './job.ts';

/**
 * Waiting jobs, sorted into queues of jobs that are alike in model, base and tier. All jobs age at one rate
 * and have affinity by model, so inside such a queue the oldest is always first: whoever decides looks at
 * the fronts and at nothing else.
 */
export class Fronts implements Iterable<Front> {
  readonly #queues = new Map<string, AlikeJobs>();

  /** Adds a job; `tierBonus` is what its tier adds. */
  add(job: WaitingJob, tierBonus: number): void {
    const key = keyOf(job);
    const queue = this.#queues.get(key);
    if (queue) queue.add(job);
    else this.#queues.set(key, new AlikeJobs(job, tierBonus));
  }

  /** Takes out a job that was added: the very object. */
  delete(job: WaitingJob): void {
    const key = keyOf(job);
    if (this.#queues.get(key)?.deleteAndAskIfEmpty(job)) this.#queues.delete(key);
  }

  /** The fronts, in no order that matters. */
  [Symbol.iterator](): IterableIterator<Front> {
    return this.#queues.values();
  }
}

class AlikeJobs implements Front {
  job: WaitingJob;
  readonly tierBonus: number;
  readonly #queue = new ArrivalQueue();

  constructor(job: WaitingJob, tierBonus: number) {
    this.job = job;
    this.tierBonus = tierBonus;
    this.#queue.add(job);
  }

  add(job: WaitingJob): void {
    this.#queue.add(job);
    if (byArrival(job, this.job) < 0) this.job = job;
  }

  deleteAndAskIfEmpty(job: WaitingJob): boolean {
    this.#queue.delete(job);
    const front = this.#queue.front;
    if (front === undefined) return true;
    this.job = front;
    return false;
  }
}

function keyOf(job: WaitingJob): string {
  return `${job.base}\n${job.tier}\n${job.model}`;
}
