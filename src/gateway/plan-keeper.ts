import type { Ledger } from '../policy/ledger.ts';
import { planAhead } from '../policy/plan.ts';
import type { Estimate } from '../policy/plan.ts';
import type { WaitingJob } from '../policy/job.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import { LISTED, queueView } from './queue-view.ts';
import type { QueueView } from './queue-view.ts';

/** What keeping a plan needs. */
export interface PlanKeeperDependencies {
  /** The queue as this process knows it. */
  ledger: () => Ledger;
  /** The place in the journal it stands for. */
  version: () => string;
  residentModel: () => Promise<string | null>;
  duration: (job: WaitingJob, cold: boolean) => Estimate;
  /** Redis TIME, in ms. */
  nowMs: () => Promise<number>;
  publish: (view: QueueView) => Promise<void>;
  telemetry: Pick<Telemetry, 'etaMissed'>;
  onError: (error: Error) => void;
}

/** Least time between two plans, in ms, and how many times its cost a plan has to last. */
const LEAST_MS = 100;
const REST_FACTOR = 10;
/** Longest time between two plans: learned durations and the resident model change too. */
const MOST_MS = 2000;

/**
 * Keeps the published plan up with the queue: soon after each change, but never for more than a tenth of this
 * process' time. Also compares when jobs start with when they were first told they would.
 */
export class PlanKeeper {
  private readonly dependencies: PlanKeeperDependencies;
  private readonly promised = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private dueAt = Infinity;
  private isPlanning = false;
  private isStale = false;
  private stopped = false;
  private restMs = LEAST_MS;

  constructor(dependencies: PlanKeeperDependencies) {
    this.dependencies = dependencies;
  }

  /** Something changed: a new plan is due. */
  changed(): void {
    this.isStale = true;
    this.schedule(this.restMs);
  }

  /** A job starts; the ledger still has it waiting. */
  started(jobId: string, atMs: number): void {
    const promisedMs = this.promised.get(jobId);
    this.promised.delete(jobId);
    if (promisedMs !== undefined) {
      this.dependencies.telemetry.etaMissed({ errorMs: Math.abs(atMs - promisedMs) });
    }
  }

  /** Makes and publishes a plan now; also returns the ids of all waiting jobs in its order. */
  async plan(): Promise<{ view: QueueView; order: string[] }> {
    this.isStale = false;
    const { dependencies } = this;
    const [residentModel, nowMs] = await Promise.all([
      dependencies.residentModel(),
      dependencies.nowMs(),
    ]);
    const startedAt = performance.now();
    const { duration } = dependencies;
    const ledger = dependencies.ledger();
    const planned = planAhead(ledger, { nowMs, residentModel, duration, foreseen: LISTED });
    const version = dependencies.version();
    const view = queueView(ledger, planned, { version, nowMs, residentModel, duration });
    const costMs = performance.now() - startedAt;
    this.restMs = Math.max(LEAST_MS, costMs * REST_FACTOR);
    for (const { job, startsIn } of planned.slice(0, LISTED)) {
      if (!this.promised.has(job.id)) this.promised.set(job.id, nowMs + startsIn.p50Ms);
    }
    if (this.promised.size > Math.min(planned.length, LISTED)) this.forgetOthers(ledger);
    await dependencies.publish(view);
    return { view, order: planned.map(({ job }) => job.id) };
  }

  /** No more plans. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private forgetOthers(ledger: Ledger): void {
    const waiting = new Set<string>(ledger.jobs.keys());
    for (const id of this.promised.keys()) if (!waiting.has(id)) this.promised.delete(id);
  }

  private schedule(afterMs: number): void {
    const dueAt = performance.now() + afterMs;
    if (this.stopped || this.isPlanning || dueAt >= this.dueAt) return;
    clearTimeout(this.timer);
    this.dueAt = dueAt;
    this.timer = setTimeout(() => void this.run(), afterMs);
  }

  private async run(): Promise<void> {
    this.dueAt = Infinity;
    this.isPlanning = true;
    try {
      await this.plan();
    } catch (error) {
      this.dependencies.onError(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.isPlanning = false;
    }
    this.schedule(this.isStale ? this.restMs : Math.max(MOST_MS, this.restMs));
  }
}
