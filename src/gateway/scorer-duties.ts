import type { EvictCode } from '../errors.ts';
import type { BodyStore } from '../ports/body-store.ts';
import type { JobFacts } from '../ports/job-queue.ts';
import type { QueueView, ShownWait } from './queue-view.ts';
import type { BandBacklog, Telemetry } from '../ports/telemetry.ts';

/** What the scorer asks of the queue. */
export interface ScorerCare {
  repair(): Promise<number>;
  sweepDeadlines(): Promise<number>;
  sweepAbandoned(graceMs: number): Promise<
    {
      jobId: string;
      outcome: 'evicted' | 'cancelled' | 'expired';
      code: EvictCode;
      facts: JobFacts;
      waitedMs: number;
    }[]
  >;
  sweepRetention(early: number): Promise<string[]>;
  backlog(): Promise<Record<string, BandBacklog>>;
  known(jobIds: readonly string[]): Promise<Set<string>>;
  markPassed(): Promise<void>;
  /** Makes BullMQ's order this one; returns how many numbers were rewritten. */
  renumber(order: readonly string[]): Promise<number>;
  show(terms: readonly { id: string; json: string }[]): Promise<void>;
}

/** What the scorer works with. */
export interface ScorerDependencies {
  care: ScorerCare;
  /** Makes the journal say what BullMQ's sets say. */
  reconcile: () => Promise<number>;
  /** Makes and publishes the plan. */
  plan: () => Promise<{ view: QueueView; order: readonly string[] }>;
  /** Sees to it that running films have a shot in the queue. */
  films: () => Promise<void>;
  store: BodyStore;
  telemetry: Telemetry;
  memory: () => Promise<{ usedBytes: number; maxBytes: number }>;
  /** How long a job with an Idempotency-Key outlives its connection, in ms. */
  graceMs: number;
  /** Fraction of Redis' memory limit above which no jobs are admitted. */
  admitBelowFraction: number;
}

/** Age from which a file without a job is an orphan, in ms: younger ones may belong to a submission under way. */
const ORPHAN_MS = 10 * 60_000;
/** Kept answers given up at once when memory is short. */
const EARLY = 200;

/** Waiting jobs whose terms the board shows, from the head of the plan: one pass writes each of them. */
const SHOWN = 2000;

function shownTerms({ id, position, score, turn_seconds, eta_seconds }: ShownWait) {
  if (id === null) return [];
  return [{ id, json: JSON.stringify({ position, score, turn_seconds, eta_seconds }) }];
}

/**
 * The scorer's work. `watch`, a few times a second: what has come due is done, jobs whose ingress died are evicted. `pass`, every
 * SCORER_INTERVAL_SECONDS: the journal is compared with BullMQ's sets, films with their shots, the plan is made and
 * published, BullMQ's numbers and what the board shows follow it, what was kept long enough is removed, earlier when
 * memory is short, and the gauges are told.
 */
export function createScorerDuties(dependencies: ScorerDependencies): {
  pass: () => Promise<void>;
  watch: () => Promise<void>;
} {
  const { care, store, telemetry } = dependencies;

  const watch = async (): Promise<void> => {
    await care.sweepDeadlines();
    const evicted = await care.sweepAbandoned(dependencies.graceMs);
    for (const { jobId, outcome, code, facts, waitedMs } of evicted) {
      const { member: memberId, band, model, kind } = facts;
      telemetry.jobSettled({
        jobId,
        memberId,
        band,
        model,
        kind,
        outcome,
        code,
        waitedMs,
      });
    }
    await store.removeJobs(evicted.map(({ jobId }) => jobId));
  };

  const pass = async (): Promise<void> => {
    const startedAt = performance.now();
    const repaired = (await care.repair()) + (await dependencies.reconcile());
    await dependencies.films();
    const { view, order } = await dependencies.plan();
    const rewritten = repaired + (await care.renumber(order));
    await care.show(view.waiting.slice(0, SHOWN).flatMap(shownTerms));
    const { usedBytes, maxBytes } = await dependencies.memory();
    const isShort = maxBytes > 0 && usedBytes > maxBytes * dependencies.admitBelowFraction * 0.9;
    await store.removeJobs(await care.sweepRetention(isShort ? EARLY : 0));
    const files = await store.listJobs(ORPHAN_MS);
    const known = files.length > 0 ? await care.known(files) : new Set<string>();
    await store.removeJobs(files.filter((id) => !known.has(id)));
    const backlog = await care.backlog();
    telemetry.backlogSeen(backlog);
    await care.markPassed();
    const waiting = Object.values(backlog).reduce((sum, band) => sum + band.waiting, 0);
    telemetry.scorerPassed({ passMs: performance.now() - startedAt, waiting, rewritten });
  };

  return { pass, watch };
}
