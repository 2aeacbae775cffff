import { byArrival, type WaitingJob } from './job.ts';

const slack = 64;

/** Jobs in order of arrival. Adding the latest and taking the oldest cost next to nothing. */
export class ArrivalQueue {
  readonly #jobs: WaitingJob[] = [];
  #taken = 0;

  /** The job that came first; undefined when there is none. */
  get front(): WaitingJob | undefined {
    return this.#jobs[this.#taken];
  }

  /** Puts a job where its arrival belongs. */
  add(job: WaitingJob): void {
    const before = this.#jobs.findLastIndex((other) => byArrival(other, job) < 0);
    this.#jobs.splice(Math.max(this.#taken, before + 1), 0, job);
  }

  /** Takes out a job that was put in: the very object. */
  delete(job: WaitingJob): void {
    if (job !== this.front) {
      this.#jobs.splice(this.#jobs.indexOf(job, this.#taken), 1);
      return;
    }
    this.#taken += 1;
    if (this.#taken > slack && this.#taken * 2 > this.#jobs.length) {
      this.#jobs.splice(0, this.#taken);
      this.#taken = 0;
    }
  }
}
