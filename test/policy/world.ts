import fc from 'fast-check';
import { nearestBand } from '../../src/policy/band.ts';
import { decide } from '../../src/policy/decide.ts';
import type { Pick } from '../../src/policy/dispatch.ts';
import { jobId, memberId, type WaitingJob } from '../../src/policy/job.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';
import type { Happened } from './oracle.ts';

/** One thing that happens after `afterMs`; while a job runs, that time is GPU time it uses. */
export type Step =
  | {
      kind: 'arrive';
      afterMs: number;
      member: string;
      tier: string;
      base: number;
      model: string;
      count: number;
    }
  | { kind: 'end'; afterMs: number }
  | { kind: 'handBack'; afterMs: number; backoffMs: number }
  | { kind: 'remove'; afterMs: number; which: number };

/** What steps are drawn from. */
export interface Range {
  members?: number;
  bases?: number[];
  tiers?: string[];
  models?: string[];
  /** Longest time between two steps. */
  mostMs?: number;
  /** Most jobs that arrive at once. */
  burst?: number;
  disturbances?: ('handBack' | 'remove')[];
}

const anywhere = [-100, -100, 0, 0, 100, 100, -149, -61, -40, 5, 13, 40, 49, 51, 130];

/** Sequences of steps. */
export function someSteps(range: Range = {}): fc.Arbitrary<Step[]> {
  const {
    members = 4,
    bases = anywhere,
    tiers = ['free', 'pro', 'max'],
    models = ['a', 'b'],
  } = range;
  const { mostMs = 960_000, burst = 4, disturbances = ['handBack', 'remove'] } = range;
  const afterMs = fc.oneof(
    fc.integer({ min: 0, max: 300 }),
    fc.integer({ min: 0, max: Math.min(mostMs, 30_000) }),
    fc.integer({ min: 0, max: mostMs }),
  );
  const arrive = fc.record({
    kind: fc.constant('arrive' as const),
    afterMs: fc.oneof(fc.constant(0), afterMs),
    member: fc.nat(members - 1).map((index) => `member-${index}`),
    tier: fc.constantFrom(...tiers),
    base: fc.constantFrom(...bases),
    model: fc.constantFrom(...models),
    count: fc.integer({ min: 1, max: burst }),
  });
  const end = fc.record({ kind: fc.constant('end' as const), afterMs });
  const handBack = fc.record({
    kind: fc.constant('handBack' as const),
    afterMs,
    backoffMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 20_000 })),
  });
  const remove = fc.record({ kind: fc.constant('remove' as const), afterMs, which: fc.nat(50) });
  const step: fc.WeightedArbitrary<Step>[] = [
    { arbitrary: arrive, weight: 5 },
    { arbitrary: end, weight: 7 },
  ];
  if (disturbances.includes('handBack')) step.push({ arbitrary: handBack, weight: 1 });
  if (disturbances.includes('remove')) step.push({ arbitrary: remove, weight: 1 });
  return fc.array(fc.oneof(...step), { minLength: 5, maxLength: 60 });
}

/** A free GPU just before a job is dispatched. */
export interface Moment {
  readonly ledger: Ledger;
  readonly pick: Pick;
  readonly residentModel: string | null;
  readonly nowMs: number;
  readonly events: readonly Happened[];
}

/** A run that has ended or gone back. */
export interface Ran {
  readonly job: WaitingJob;
  readonly startMs: number;
  readonly usedMs: number;
  readonly chargedMs: number;
  readonly completed: boolean;
}

export interface Played {
  readonly events: Happened[];
  readonly ran: Ran[];
  readonly ledger: Ledger;
  readonly accepted: WaitingJob[];
  readonly removed: WaitingJob[];
}

export interface Play {
  readonly rules?: Rules;
  readonly startMs?: number;
  /** Called before each dispatch. */
  readonly atDispatch?: (moment: Moment) => void;
  /** Called after each event. */
  readonly afterEvent?: (ledger: Ledger, events: readonly Happened[]) => void;
  /** Gives the ledger to go on with before the step of that index. */
  readonly swapLedger?: (ledger: Ledger, index: number) => Ledger;
}

const noHold = { ...defaultRules.aging, hold: { seconds: 0, share: 0 } };

/** The default rules without the hold, which waits for time to pass and not for a step. */
export const promptRules: Rules = { ...defaultRules, aging: noHold };

/** Plays the steps, then lets everything that still waits run; whenever the GPU is free it is given to the pick. */
export function play(steps: readonly Step[], options: Play = {}): Played {
  const { rules = promptRules, startMs = 1_800_000_000_000 } = options;
  const events: Happened[] = [];
  const ran: Ran[] = [];
  const accepted: WaitingJob[] = [];
  const removed: WaitingJob[] = [];
  let ledger = new Ledger(rules);
  let nowMs = startMs;
  let residentModel: string | null = null;

  const note = (event: Happened): void => {
    events.push(event);
    options.afterEvent?.(ledger, events);
  };
  const settle = (completed: boolean, backoffMs: number): void => {
    const { run } = ledger;
    if (run === null) return;
    const usedMs = nowMs - run.startedMs;
    const eligibleAtMs = nowMs + backoffMs;
    const chargedMs = completed
      ? ledger.end(nowMs, usedMs)
      : ledger.handBack(nowMs, usedMs, eligibleAtMs);
    ran.push({ job: run.job, startMs: run.startedMs, usedMs, chargedMs, completed });
    note(
      completed
        ? { kind: 'end', atMs: nowMs, usedMs }
        : { kind: 'handBack', atMs: nowMs, usedMs, eligibleAtMs },
    );
  };
  const fill = (): void => {
    if (ledger.run !== null) return;
    const decision = decide(ledger, residentModel, nowMs);
    const eligible = [...ledger.jobs.values()].some((job) => (job.eligibleAtMs ?? 0) <= nowMs);
    if ((decision.kind === 'run') !== eligible)
      throw new Error(`${decision.kind} with jobs to run: ${eligible}`);
    if (decision.kind !== 'run') return;
    const { pick } = decision;
    options.atDispatch?.({ ledger, pick, residentModel, nowMs, events });
    ledger.dispatch(pick, nowMs);
    note({ kind: 'dispatch', id: pick.job.id, atMs: nowMs, residentModel });
    residentModel = pick.job.model;
  };

  steps.forEach((step, index) => {
    ledger = options.swapLedger?.(ledger, index) ?? ledger;
    nowMs += step.afterMs;
    if (step.kind === 'end') settle(true, 0);
    else if (step.kind === 'handBack') settle(false, step.backoffMs);
    else if (step.kind === 'remove') {
      const waiting = [...ledger.jobs.values()];
      const job = waiting[step.which % Math.max(1, waiting.length)];
      if (job !== undefined) {
        ledger.remove(job.id);
        removed.push(job);
        note({ kind: 'remove', id: job.id });
      }
    } else {
      for (let copy = 0; copy < step.count; copy += 1) {
        const { member, tier, base, model } = step;
        const job: WaitingJob = {
          id: jobId(`job-${String(accepted.length).padStart(4, '0')}`),
          member: memberId(member),
          tier,
          band: nearestBand(base, rules),
          base,
          model,
          arrivalMs: nowMs,
          sequence: accepted.length,
        };
        accepted.push(job);
        ledger.arrive(job);
        note({ kind: 'arrive', job });
      }
    }
    fill();
  });
  while (ledger.run !== null || ledger.jobs.size > 0) {
    nowMs += 20_000;
    settle(true, 0);
    fill();
  }
  return { events, ran, ledger, accepted, removed };
}

/** GPU time of the longest run, in milliseconds. */
export function longestRunMs(played: Played): number {
  return Math.max(0, ...played.ran.map((run) => Math.max(run.usedMs, run.chargedMs)));
}
