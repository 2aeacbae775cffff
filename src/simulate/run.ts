import { nearestBand } from '../policy/band.ts';
import { decide, type Decision } from '../policy/decide.ts';
import { jobId, memberId, type WaitingJob } from '../policy/job.ts';
import { Ledger } from '../policy/ledger.ts';
import type { Rules } from '../policy/rules.ts';
import type { Arrival, Chain, WorkItem, Workload } from './workload.ts';

/** A job that has run. Times in milliseconds after the start. */
export interface RanJob {
  readonly job: WaitingJob;
  readonly startMs: number;
  readonly endMs: number;
  /** Part of the run that went into loading the model. */
  readonly swapMs: number;
}

/** What a simulation did. */
export interface Simulation {
  readonly ran: readonly RanJob[];
  /** Jobs that had not started when it stopped. */
  readonly waiting: readonly WaitingJob[];
  /** Time the GPU was held for an expected job while others waited. */
  readonly heldMs: number;
  readonly endMs: number;
}

/** Told of every decision before it is carried out. */
export type Watch = (
  ledger: Ledger,
  decision: Decision,
  residentModel: string | null,
  nowMs: number,
) => void;

interface Coming extends WorkItem {
  readonly atMs: number;
  readonly chain?: Chain;
  readonly index?: number;
}

/** Lets a workload run against the policy: one job at a time, the books kept as the worker keeps them. */
export function simulate(workload: Workload, rules: Rules, watch?: Watch): Simulation {
  const ledger = new Ledger(rules);
  const chainOf = new Map<string, { chain: Chain; index: number }>();
  const itemOf = new Map<string, WorkItem>();
  const coming: Coming[] = [
    ...workload.arrivals,
    ...workload.chains.flatMap((chain) => link(chain, 0, chain.atMs)),
  ];
  coming.sort((a, b) => a.atMs - b.atMs).reverse();
  const ran: RanJob[] = [];
  const stopMs = workload.stopMs ?? Infinity;
  let sequence = 0;
  let nowMs = 0;
  let heldMs = 0;
  let residentModel: string | null = null;

  const admitUntil = (untilMs: number): void => {
    for (
      let next = coming.at(-1);
      next !== undefined && next.atMs <= untilMs;
      next = coming.at(-1)
    ) {
      coming.pop();
      sequence += 1;
      const job = jobOf(next, sequence, rules);
      itemOf.set(job.id, next);
      if (next.chain) chainOf.set(job.id, { chain: next.chain, index: next.index ?? 0 });
      ledger.arrive(job);
    }
  };
  const sendNext = (id: string): void => {
    const sent = chainOf.get(id);
    if (sent === undefined) return;
    for (const next of link(sent.chain, sent.index + 1, nowMs + sent.chain.gapMs)) {
      const place = coming.findLastIndex((other) => other.atMs > next.atMs) + 1;
      coming.splice(place, 0, next);
    }
  };

  while (nowMs < stopMs) {
    admitUntil(nowMs);
    const decision = decide(ledger, residentModel, nowMs);
    watch?.(ledger, decision, residentModel, nowMs);
    if (decision.kind === 'run') {
      const { job } = decision.pick;
      ledger.dispatch(decision.pick, nowMs);
      const swapMs = job.model === residentModel ? 0 : workload.swapMs;
      const usedMs = swapMs + (itemOf.get(job.id)?.runMs ?? 0);
      const startMs = nowMs;
      nowMs += usedMs;
      residentModel = job.model;
      admitUntil(nowMs - 1);
      ledger.end(nowMs, usedMs);
      ran.push({ job, startMs, endMs: nowMs, swapMs });
      sendNext(job.id);
    } else {
      const nextMs = Math.min(coming.at(-1)?.atMs ?? Infinity, decision.untilMs ?? Infinity);
      if (!Number.isFinite(nextMs)) break;
      if (decision.kind === 'hold') heldMs += nextMs - nowMs;
      nowMs = nextMs;
    }
  }
  return { ran, waiting: [...ledger.jobs.values()], heldMs, endMs: nowMs };
}

function link(chain: Chain, index: number, atMs: number): Coming[] {
  const item = chain.items[index];
  return item === undefined ? [] : [{ ...item, atMs, chain, index }];
}

function jobOf(item: Arrival, sequence: number, rules: Rules): WaitingJob {
  const { member, tier, base, model, atMs } = item;
  return {
    id: jobId(`job-${sequence}`),
    member: memberId(member),
    tier,
    band: nearestBand(base, rules),
    base,
    model,
    arrivalMs: atMs,
    sequence,
  };
}
