import { bestLosers, displacedBy } from '../policy/decide.ts';
import { terms } from '../policy/effective-priority.ts';
import type { Term } from '../policy/effective-priority.ts';
import type { WaitingJob } from '../policy/job.ts';
import type { Ledger } from '../policy/ledger.ts';
import type { LedgerEvent } from '../policy/ledger-event.ts';
import { standingOf } from '../policy/standing.ts';
import type { DispatchLog, RecordedJob } from '../ports/dispatch-log.ts';
import type { Telemetry } from '../ports/telemetry.ts';

/** What recording needs. */
export interface DispatchRecorderDependencies {
  /** The model that was resident when the pick was made. */
  residentModel: () => string | null;
  log: DispatchLog;
  telemetry: Pick<Telemetry, 'orderChanged'>;
}

/**
 * Follows the queue's events, each before it is applied: a dispatch leaves a record of who went, by which terms, and
 * who would have gone without one of them; the end of the run tells what that cost the displaced.
 */
export class DispatchRecorder {
  private readonly dependencies: DispatchRecorderDependencies;
  private displaced: { jobId: string; by: Partial<Record<Term, WaitingJob>> } | undefined;
  private load: { jobId: string; model: string; ms: number } = { jobId: '', model: '', ms: 0 };

  constructor(dependencies: DispatchRecorderDependencies) {
    this.dependencies = dependencies;
  }

  /** An event that is about to be applied to the ledger. */
  before(event: LedgerEvent, ledger: Ledger): void {
    const { job, atMs, kind } = event;
    if (kind === 'dispatch') this.dispatched(event, ledger);
    else if (kind === 'end' || kind === 'back') {
      const { usedMs } = event;
      const loadMs = Math.min(usedMs, this.load.model === job.model ? this.load.ms : 0);
      this.dependencies.log.add({ kind, atMs, id: job.id, usedMs, loadMs });
      this.ended(job.id, event.usedMs);
    }
  }

  /** The model server loaded a model; it counts if it is the running job's. */
  loaded(model: string, ms: number): void {
    if (model === this.load.model) this.load.ms += ms;
  }

  /** Of the run of this job, how long the model server has loaded its model, in ms. */
  loadedMs(jobId: string): number {
    return this.load.jobId === jobId ? this.load.ms : 0;
  }

  private dispatched(event: Extract<LedgerEvent, { kind: 'dispatch' }>, ledger: Ledger): void {
    const job = ledger.jobs.get(event.job.id);
    if (job === undefined || ledger.run !== null) return;
    this.load = { jobId: job.id, model: job.model, ms: 0 };
    const { atMs, passedOver } = event;
    const residentModel = this.dependencies.residentModel();
    const pick = { band: job.band, job, passedOver };
    const by = displacedBy(ledger, pick, residentModel);
    this.displaced = { jobId: job.id, by };
    const recorded = (each: WaitingJob): RecordedJob => {
      const { id, member, tier, band, base, model, arrivalMs } = each;
      const { score } = standingOf(ledger, each, residentModel, atMs);
      return { id, member, tier, band, base, model, arrivalMs, score };
    };
    const losers = Object.entries(bestLosers(ledger, pick, residentModel));
    this.dependencies.log.add({
      kind: 'dispatch',
      atMs,
      winner: recorded(job),
      turnMs: standingOf(ledger, job, residentModel, atMs).turnMs,
      passedOver: passedOver.length,
      losers: Object.fromEntries(losers.map(([band, loser]) => [band, recorded(loser)])),
      displaced: Object.fromEntries(Object.entries(by).map(([term, other]) => [term, other.id])),
      waiting: waitingCounts(ledger, job),
      residentModel,
      isSwap: job.model !== residentModel,
    });
  }

  private ended(jobId: string, usedMs: number): void {
    if (this.displaced?.jobId !== jobId) return;
    const { by } = this.displaced;
    this.displaced = undefined;
    for (const term of terms) {
      const other = by[term];
      if (other === undefined) continue;
      this.dependencies.telemetry.orderChanged({ term, band: other.band, delayedMs: usedMs });
    }
  }
}

function waitingCounts(ledger: Ledger, winner: WaitingJob): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, band] of ledger.bands) {
    let waiting = name === winner.band ? -1 : 0;
    for (const lane of band.lanes.values()) waiting += lane.waiting;
    counts[name] = waiting;
  }
  return counts;
}
