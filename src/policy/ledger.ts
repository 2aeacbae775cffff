import { nearestBand } from './band.ts';
import { BandLanes, type BandState } from './band-lanes.ts';
import type { Pick } from './dispatch.ts';
import type { Expected } from './hold.ts';
import { byArrival, type JobId, type WaitingJob } from './job.ts';
import type { Rules } from './rules.ts';
import {
  dispatchFrom,
  endRun,
  handBackRun,
  openLane,
  passOver,
  type Run,
  type SettledRun,
} from './transitions.ts';

/** Everything the policy remembers, in plain data: what it takes to go on elsewhere with the same picks. */
export interface LedgerState {
  /** The latest time it was told, unix milliseconds. */
  readonly nowMs: number;
  readonly bands: Readonly<Record<string, BandState>>;
  /** The waiting jobs. */
  readonly jobs: readonly WaitingJob[];
  readonly run: Run | null;
  readonly expected: Expected | null;
}

/**
 * The waiting jobs of one GPU, their lanes and the books of the bands. A job goes
 *
 *     arrive -> waiting -> dispatch -> running -> end
 *               |    ^                  |
 *          remove    +---- handBack ----+
 *
 * One job runs at a time. Times are unix milliseconds and never go back: one before the last counts as the
 * last. Jobs are told apart by id; a caller's object is kept, never changed.
 */
export class Ledger {
  readonly rules: Rules;
  readonly #bands = new Map<string, BandLanes>();
  readonly #jobs = new Map<JobId, WaitingJob>();
  readonly #inBackoff = new Map<WaitingJob, number>();
  #run: Run | null = null;
  #expected: Expected | null = null;
  #nowMs = 0;

  constructor(rules: Rules) {
    this.rules = rules;
    const highestFirst = Object.entries(rules.bands).sort((a, b) => b[1] - a[1]);
    for (const [band] of highestFirst) this.#bands.set(band, new BandLanes(band, rules));
  }

  /**
   * Goes on where `state` left off; a lane none of whose jobs waits any more is closed. Its bands must be those of the
   * rules; otherwise `rebuild`.
   */
  static from(state: LedgerState, rules: Rules): Ledger {
    const ledger = new Ledger(rules);
    ledger.#nowMs = state.nowMs;
    ledger.#run = state.run;
    ledger.#expected = state.expected;
    for (const [band, books] of Object.entries(state.bands)) {
      ledger.#bands.set(band, BandLanes.from(band, books, rules));
    }
    for (const job of state.jobs) {
      ledger.#band(job).lane(job.member).waiting += 1;
      ledger.#admit(job);
    }
    for (const band of ledger.#bands.values()) {
      band.closeEmptyLanes();
      ledger.#restIfIdle(band);
    }
    return ledger;
  }

  /** Starts over from the waiting jobs alone, as if they had just arrived in their order. */
  static rebuild(jobs: Iterable<WaitingJob>, rules: Rules): Ledger {
    const ledger = new Ledger(rules);
    for (const job of [...jobs].sort(byArrival)) {
      ledger.arrive({ ...job, band: nearestBand(job.base, rules) });
    }
    return ledger;
  }

  /** All of it in plain data. */
  state(): LedgerState {
    return {
      nowMs: this.#nowMs,
      bands: Object.fromEntries([...this.#bands].map(([band, lanes]) => [band, lanes.state()])),
      jobs: [...this.#jobs.values()],
      run: this.#run,
      expected: this.#expected,
    };
  }

  /** The job that has the GPU; null while it is free. */
  get run(): Run | null {
    return this.#run;
  }

  /** What ended last, while the GPU may be held for its producer's next job. */
  get expected(): Expected | null {
    return this.#expected;
  }

  /** The latest time it was told. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** When the first job in backoff may run again; infinite when there is none. */
  get nextWakeMs(): number {
    let nextMs = Infinity;
    for (const eligibleAtMs of this.#inBackoff.values()) nextMs = Math.min(nextMs, eligibleAtMs);
    return nextMs;
  }

  /** The waiting jobs, those in backoff included. */
  get jobs(): ReadonlyMap<JobId, WaitingJob> {
    return this.#jobs;
  }

  /** The bands by name, highest first. */
  get bands(): ReadonlyMap<string, BandLanes> {
    return this.#bands;
  }

  /** A job arrives; one that waits or runs already is left as it is. */
  arrive(job: WaitingJob): void {
    if (this.#jobs.has(job.id) || this.#run?.job.id === job.id) return;
    this.#tell(job.arrivalMs);
    this.#band(job).enter(job);
    this.#admit(job);
    const expected = this.#expected?.job;
    if (expected?.member === job.member && expected.band === job.band) this.#expected = null;
  }

  /** A waiting job is taken away; undefined when none of that id waits. */
  remove(id: JobId): WaitingJob | undefined {
    const job = this.#jobs.get(id);
    if (job === undefined) return undefined;
    const closed = this.#take(job);
    if (closed && this.#run?.job.band === job.band) {
      const passedOver = this.#run.passedOver.filter((member) => member !== job.member);
      this.#run = { ...this.#run, passedOver };
    }
    this.#restIfIdle(this.#band(job));
    return job;
  }

  /** Jobs whose backoff is over by now may run again. */
  wake(nowMs: number): void {
    this.#tell(nowMs);
    for (const [job, eligibleAtMs] of this.#inBackoff) {
      if (eligibleAtMs > this.#nowMs) continue;
      this.#inBackoff.delete(job);
      this.#band(job).offer(job);
    }
  }

  /** A job in backoff may run at once, whatever it was to wait for; any other is left as it is. */
  wakeJob(id: JobId, nowMs: number): void {
    this.#tell(nowMs);
    const job = this.#jobs.get(id);
    if (job === undefined || !this.#inBackoff.delete(job)) return;
    this.#admit({ ...job, eligibleAtMs: 0 });
  }

  /** Whether a waiting job is in backoff. */
  isInBackoff(id: JobId): boolean {
    const job = this.#jobs.get(id);
    return job !== undefined && this.#inBackoff.has(job);
  }

  /** How many of the waiting jobs are in backoff. */
  get inBackoff(): number {
    return this.#inBackoff.size;
  }

  /**
   * A pick gets the GPU.
   *
   * @throws {RangeError} when that job does not wait here, or the GPU is taken
   */
  dispatch(pick: Pick, nowMs: number): Run {
    const job = this.#jobs.get(pick.job.id);
    if (job === undefined) throw new RangeError(`job ${pick.job.id} does not wait`);
    if (this.#run !== null) throw new RangeError(`job ${this.#run.job.id} has the GPU`);
    this.#tell(nowMs);
    const band = this.#band(job);
    const lane = band.lane(job.member).books;
    const { clockMs, leastStartTagMs } = band;
    const { passedOver } = pick;
    band.books = dispatchFrom(band.books, lane, leastStartTagMs, this.rules);
    this.#run = { job, startedMs: this.#nowMs, lane, clockMs, passedOver };
    this.#expected = null;
    this.#take(job);
    return this.#run;
  }

  /**
   * The run is over, however it went.
   *
   * @param usedMs GPU time it used, whole milliseconds, the swap it forced included
   * @returns the GPU time charged, at least 100 ms; 0 when nothing ran
   */
  end(nowMs: number, usedMs: number): number {
    const run = this.#run;
    if (run === null) return 0;
    this.#tell(nowMs);
    const band = this.#band(run.job);
    const settled = endRun(band.books, run, { nowMs: this.#nowMs, usedMs }, this.rules);
    this.#settle(run, settled);
    const { job } = run;
    if (!band.lanes.has(job.member)) {
      band.noteLeaving(job.member, this.#nowMs);
      if (band.prompt.has(job.member)) {
        const lane = openLane(band.books, settled.finishTagMs);
        this.#expected = { job, costMs: settled.costMs, endedMs: this.#nowMs, lane };
      }
    }
    this.#restIfIdle(band);
    return settled.costMs;
  }

  /**
   * What `ask` finds as if the run were over; the ledger stays as it is.
   *
   * @param nowMs when the run would end
   * @param usedMs as for `end`
   * @param next a job that would arrive in that very step
   */
  asIfEnded<T>(nowMs: number, usedMs: number, ask: () => T, next?: WaitingJob): T {
    const run = this.#run;
    if (run === null) return ask();
    const beforeMs = this.#nowMs;
    const expected = this.#expected;
    const restore = [this.#band(run.job).remember(run.job.member, run.passedOver)];
    if (next !== undefined) restore.push(this.#band(next).remember(next.member, []));
    this.end(nowMs, usedMs);
    if (next !== undefined) this.arrive(next);
    try {
      return ask();
    } finally {
      if (next !== undefined) this.remove(next.id);
      for (const putBack of restore) putBack();
      this.#run = run;
      this.#expected = expected;
      this.#nowMs = beforeMs;
    }
  }

  /**
   * The run goes back to the queue; it keeps its arrival and its place.
   *
   * @param usedMs GPU time it used all the same
   * @param eligibleAtMs when it may run again, for a retry with backoff; default: at once
   * @returns the GPU time charged; 0 when nothing ran
   */
  handBack(nowMs: number, usedMs: number, eligibleAtMs = 0): number {
    const run = this.#run;
    if (run === null) return 0;
    this.#tell(nowMs);
    const band = this.#band(run.job);
    const settled = handBackRun(band.books, run, usedMs, this.rules);
    const job = { ...run.job, eligibleAtMs };
    band.enter(job);
    this.#settle(run, settled);
    this.#admit(job);
    return settled.costMs;
  }

  #settle(run: Run, settled: SettledRun): void {
    const band = this.#band(run.job);
    this.#run = null;
    band.books = settled.band;
    band.finishTagMs.set(run.job.member, settled.finishTagMs);
    const own = band.lanes.get(run.job.member);
    if (own !== undefined) own.books = settled.lane;
    for (const member of run.passedOver) {
      const lane = band.lanes.get(member);
      if (lane !== undefined) lane.books = passOver(lane.books, settled.costMs);
    }
  }

  #admit(job: WaitingJob): void {
    const eligibleAtMs = job.eligibleAtMs ?? 0;
    this.#jobs.set(job.id, job);
    if (eligibleAtMs > this.#nowMs) this.#inBackoff.set(job, eligibleAtMs);
    else this.#band(job).offer(job);
  }

  /** Takes a job out of its lane; tells whether the lane closed. */
  #take(job: WaitingJob): boolean {
    this.#jobs.delete(job.id);
    const band = this.#band(job);
    if (!this.#inBackoff.delete(job)) band.withdraw(job);
    return band.leave(job);
  }

  #restIfIdle(band: BandLanes): void {
    if (band.lanes.size === 0 && this.#run?.job.band !== band.band) band.rest();
  }

  #tell(nowMs: number): void {
    this.#nowMs = Math.max(this.#nowMs, nowMs);
  }

  #band(job: WaitingJob): BandLanes {
    const band = this.#bands.get(job.band);
    if (band === undefined) throw new RangeError(`the rules name no band ${job.band}`);
    return band;
  }
}
