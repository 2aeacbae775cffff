import { setMaxListeners } from 'node:events';
import { Agent, request } from 'undici';
import { monotonicMs } from '../../src/demo-model-server/pace.ts';
import type { RequestRecord } from '../../src/demo-model-server/request-record.ts';
import type { DemoModelServer } from '../../src/demo-model-server/server.ts';
import { nearestBand } from '../../src/policy/band.ts';
import { jobId, memberId, type WaitingJob } from '../../src/policy/job.ts';
import type { Rules } from '../../src/policy/rules.ts';
import type { RanJob, Simulation } from '../../src/simulate/run.ts';
import type { Arrival, Chain, Workload } from '../../src/simulate/workload.ts';
import type { BookedRun } from './day-books.ts';
import { DayClock } from './day-clock.ts';

/** Jobs of a long day wait for longer than the five minutes after which fetch gives up. */
const patient = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

/** A job of a day; with `headers` it says by itself how urgent it is and whose it is. */
export type DayArrival = Arrival & { readonly headers?: Readonly<Record<string, string>> };

/** A workload whose jobs may bring headers of their own. */
export interface DayWorkload extends Workload {
  readonly arrivals: readonly DayArrival[];
}

/** What became of a day. */
export interface PlayedDay {
  /** Seen at the model server and at the clients, in the workload's own milliseconds: overheads are stretched with the day. */
  readonly simulation: Simulation;
  /**
   * The same runs with waits as they are in real time: what passed on the day's clock, and what the gateway and the
   * machine needed beside it at its real length instead of so many times longer. In the order of their ends.
   */
  readonly inRealTime: readonly RanJob[];
  /** The same runs as the gateway has them on record. */
  readonly booked: readonly BookedRun[];
  /** Answers by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Real milliseconds from each run's end to the next one's start, where something waited. */
  readonly gapsMs: readonly number[];
  /** Requests that held the GPU at the same time as another one. */
  readonly overlaps: number;
  /** Real milliseconds from the first to the last run. */
  readonly tookMs: number;
}

interface Sent {
  readonly job: WaitingJob;
  readonly item: DayArrival;
  readonly sentMs: number;
  /** What time the day had. */
  readonly dayMs: number;
  readonly next?: { readonly chain: Chain; readonly index: number };
}

interface Begun {
  readonly swapMs: number;
  /** What time the day had. */
  readonly dayMs: number;
}

/** One play of a workload: its clients, and what the model server tells of their jobs. */
export class DayPlay {
  readonly #workload: DayWorkload;
  readonly #factor: number;
  readonly #rules: Rules;
  readonly #clock: DayClock;
  readonly #coming: (DayArrival & { next?: Sent['next'] })[];
  readonly #sent = new Map<string, Sent>();
  readonly #outstanding = new Set<string>();
  readonly #begun = new Map<number, Begun>();
  readonly #ran: RanJob[] = [];
  readonly #inRealTime: RanJob[] = [];
  readonly #gapsMs: number[] = [];
  readonly #statuses: Record<string, number> = {};
  readonly #stop = new AbortController();
  #url = '';
  #timer: NodeJS.Timeout | undefined;
  #originMs = 0;
  #freeSinceMs: number | undefined;
  /** Producers that will send another job. */
  #openChains = 0;
  #begin: () => void = () => undefined;
  #finish: () => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;

  /** Resolves when its first run has ended: by then all that came at its beginning is in the queue. */
  readonly underWay = new Promise<void>((resolve) => (this.#begin = resolve));

  constructor(workload: DayWorkload, factor: number, rules: Rules) {
    this.#workload = workload;
    this.#factor = factor;
    this.#rules = rules;
    this.#clock = new DayClock(factor);
    // Every job that waits listens for the end of the day.
    setMaxListeners(0, this.#stop.signal);
    const heads = workload.chains.flatMap((chain) => {
      const item = chain.items[0];
      return item === undefined ? [] : [{ ...item, atMs: chain.atMs, next: { chain, index: 1 } }];
    });
    this.#coming = [...workload.arrivals, ...heads].toSorted((a, b) => a.atMs - b.atMs).reverse();
  }

  async play(url: string): Promise<void> {
    this.#url = url;
    const over = new Promise<void>((resolve, reject) => {
      this.#finish = resolve;
      this.#fail = reject;
    });
    this.#originMs = monotonicMs();
    this.#clock.go();
    this.#look();
    try {
      await over;
    } finally {
      clearTimeout(this.#timer);
      this.#stop.abort();
    }
  }

  /** Asked by the model server about each request that has come. */
  began(record: RequestRecord, demo: DemoModelServer): undefined {
    const sent = this.#sent.get(String(record.headers['x-test-name']));
    if (!record.gpu || sent === undefined) return;
    if (this.#freeSinceMs !== undefined) this.#gapsMs.push(monotonicMs() - this.#freeSinceMs);
    this.#freeSinceMs = undefined;
    const swapMs = demo.residentModel === record.model ? 0 : this.#workload.swapMs;
    this.#begun.set(record.id, { swapMs, dayMs: this.#clock.nowMs });
    this.#clock.go(swapMs + sent.item.runMs);
    this.#arm();
  }

  /** Told by the model server of each request that has ended. */
  ended(record: RequestRecord): void {
    const sent = this.#sent.get(String(record.headers['x-test-name']));
    if (sent === undefined || record.gpuStartedAtMs === null || record.endedAtMs === null) return;
    this.#clock.stop(!record.aborted);
    if (record.aborted) return;
    this.#begin();
    this.#outstanding.delete(sent.job.id);
    this.#note(sent, this.#begun.get(record.id), record.gpuStartedAtMs, record.endedAtMs);
    if (this.#outstanding.size > 0) this.#freeSinceMs = record.endedAtMs;
    else this.#clock.go();
    this.#look();
  }

  result(): Omit<PlayedDay, 'overlaps' | 'booked'> {
    const ids = new Set<string>(this.#ran.map(({ job }) => job.id));
    const heldMs = this.#gapsMs.reduce((sum, gapMs) => sum + gapMs, 0) * this.#factor;
    const endMs = Math.max(0, ...this.#ran.map((run) => run.endMs));
    return {
      simulation: {
        ran: this.#ran.toSorted((a, b) => a.startMs - b.startMs),
        waiting: [...this.#sent.values()].map(({ job }) => job).filter(({ id }) => !ids.has(id)),
        heldMs,
        endMs,
      },
      inRealTime: this.#inRealTime,
      statuses: this.#statuses,
      gapsMs: this.#gapsMs,
      tookMs: endMs / this.#factor,
    };
  }

  #note(sent: Sent, begun: Begun | undefined, startedMs: number, endedMs: number): void {
    const { job, item, sentMs, dayMs } = sent;
    const swapMs = begun?.swapMs ?? 0;
    this.#ran.push({
      job: { ...job, arrivalMs: this.#dayMs(sentMs) },
      startMs: this.#dayMs(startedMs),
      endMs: this.#dayMs(endedMs),
      swapMs,
    });
    const waitedMs = (begun?.dayMs ?? dayMs) - dayMs;
    const startMs = dayMs + waitedMs + (startedMs - sentMs - waitedMs / this.#factor);
    const endMs = startMs + swapMs + item.runMs;
    this.#inRealTime.push({ job: { ...job, arrivalMs: dayMs }, startMs, endMs, swapMs });
  }

  #dayMs(realMs: number): number {
    return (realMs - this.#originMs) * this.#factor;
  }

  /** Sends what is due and looks again when more is. */
  #look(): void {
    const nowMs = this.#clock.nowMs;
    if (nowMs >= (this.#workload.stopMs ?? Infinity)) {
      this.#finish();
      return;
    }
    for (let next = this.#coming.at(-1); next !== undefined; next = this.#coming.at(-1)) {
      if (next.atMs > nowMs) break;
      this.#coming.pop();
      this.#send(next);
    }
    if (this.#coming.length === 0 && this.#outstanding.size === 0 && this.#openChains === 0) {
      this.#finish();
    } else {
      this.#arm();
    }
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const atMs = Math.min(this.#coming.at(-1)?.atMs ?? Infinity, this.#workload.stopMs ?? Infinity);
    const realMs = this.#clock.realMsUntil(atMs);
    if (Number.isFinite(realMs)) this.#timer = setTimeout(() => this.#look(), Math.ceil(realMs));
  }

  #send(item: DayArrival & { next?: Sent['next'] }): void {
    const name = `job-${this.#sent.size + 1}`;
    const { base, member, tier, model } = item;
    const sentMs = monotonicMs();
    const dayMs = this.#clock.nowMs;
    const job: WaitingJob = {
      id: jobId(name),
      member: memberId(member),
      tier,
      band: nearestBand(base, this.#rules),
      base,
      model,
      arrivalMs: item.atMs,
      sequence: this.#sent.size + 1,
    };
    const { next } = item;
    this.#sent.set(name, { job, item, sentMs, dayMs, ...(next === undefined ? {} : { next }) });
    if (this.#outstanding.size === 0) {
      this.#clock.stop();
      this.#freeSinceMs = undefined;
    }
    this.#outstanding.add(name);
    this.#ask(name, item).then(
      () => this.#sendNext(name),
      (error: unknown) => {
        if (!this.#stop.signal.aborted) this.#fail(error);
      },
    );
    if (next !== undefined) this.#openChains += 1;
  }

  async #ask(name: string, item: DayArrival): Promise<void> {
    const own = item.headers ?? {
      'x-llamaswap-priority': String(item.base),
      'x-berth-member': item.member,
      'x-berth-tier': item.tier,
    };
    const { statusCode: status, body } = await request(`${this.#url}/v1/images/generations`, {
      dispatcher: patient,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-test-name': name, ...own },
      body: JSON.stringify({
        model: item.model,
        prompt: name,
        size: '1x1',
        demo_ms: item.runMs,
      }),
      signal: this.#stop.signal,
    });
    const answer = await body.text();
    this.#statuses[status] = (this.#statuses[status] ?? 0) + 1;
    if (status !== 200) {
      throw new Error(`${name} was answered ${status}: ${answer.slice(0, 300)}`);
    }
  }

  /** A producer that sends one at a time sends its next job when it has its answer. */
  #sendNext(name: string): void {
    const next = this.#sent.get(name)?.next;
    if (next === undefined) return;
    const { chain, index } = next;
    const item = chain.items[index];
    setTimeout(() => {
      this.#openChains -= 1;
      if (this.#stop.signal.aborted) return;
      if (item === undefined) this.#look();
      else this.#send({ ...item, atMs: this.#clock.nowMs, next: { chain, index: index + 1 } });
    }, chain.gapMs / this.#factor);
  }
}
