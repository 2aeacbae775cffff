import type { Logger } from '../../ports/logger.ts';
import type * as port from '../../ports/telemetry.ts';
import type { Metrics } from './metrics.ts';
import { ModelLabels } from './model-labels.ts';

/**
 * Turns each fact into its log line and its metrics. What is told again and again (durability, policy
 * comparison) is logged when it changes.
 */
export class FactTelemetry implements port.Telemetry {
  readonly log: Logger;
  private readonly metrics: Metrics;
  private readonly bands: ReadonlySet<string>;
  private readonly models = new ModelLabels();
  private lastTold = new Map<string, string>();

  /** @param bands - names of the configured bands; any other becomes `other` in a label */
  constructor(log: Logger, metrics: Metrics, bands: readonly string[]) {
    this.log = log;
    this.metrics = metrics;
    this.bands = new Set(bands);
  }

  jobAdmitted(fact: port.JobAdmitted): void {
    this.metrics.admissions.inc(this.byBand(fact));
    this.log.info({ ...fact }, 'job.admitted');
  }

  jobRejected(fact: port.JobRejected): void {
    this.metrics.rejections.inc({ code: fact.code });
    this.log.info({ ...fact }, 'job.rejected');
  }

  jobDispatched(fact: port.JobDispatched): void {
    this.metrics.dispatches.inc(this.byBand(fact));
    if (fact.attempt === 1) this.metrics.wait.observe(this.byBand(fact), seconds(fact.waitedMs));
    this.log.info({ ...fact }, 'job.dispatched');
  }

  jobSettled(fact: port.JobSettled): void {
    this.metrics.jobs.inc({ ...this.byBand(fact), outcome: fact.outcome });
    if (fact.ranMs !== undefined) {
      this.metrics.gpuBusy.inc(seconds(fact.ranMs));
      if (fact.outcome === 'completed') {
        const model = this.models.labelOf(fact.model);
        this.metrics.run.observe({ model, kind: fact.kind }, seconds(fact.ranMs));
      }
    }
    this.log[fact.outcome === 'failed' ? 'warn' : 'info']({ ...fact }, 'job.settled');
  }

  jobRetried(fact: port.JobRetried): void {
    this.metrics.retries.inc({ code: fact.code });
    this.metrics.gpuBusy.inc(seconds(fact.ranMs));
    this.log.warn({ ...fact }, 'job.retried');
  }

  jobHandedBack(fact: port.JobHandedBack): void {
    this.metrics.handBacks.inc({ because: fact.because });
    if (fact.ranMs !== undefined) this.metrics.gpuBusy.inc(seconds(fact.ranMs));
    this.log[fact.because === 'shutting_down' ? 'info' : 'warn']({ ...fact }, 'job.handed_back');
  }

  webhookTried(fact: port.WebhookTried): void {
    this.metrics.webhooks.inc({ result: fact.result });
    this.log[fact.result === 'delivered' ? 'info' : 'warn']({ ...fact }, `webhook.${fact.result}`);
  }

  requestEnded(fact: port.RequestEnd): void {
    const { status } = fact;
    this.metrics.requests.inc({ status: status === 499 ? '499' : `${Math.floor(status / 100)}xx` });
    this.log[fact.jobId === undefined && status < 400 ? 'debug' : 'info'](
      { ...fact },
      'request.ended',
    );
  }

  priorityNoticed(fact: Parameters<port.Telemetry['priorityNoticed']>[0]): void {
    this.metrics.priorityNotices.inc({ notice: fact.notice });
    this.log.debug({ ...fact }, 'priority.noticed');
  }

  assertionIgnored(fact: Parameters<port.Telemetry['assertionIgnored']>[0]): void {
    this.metrics.ignoredAssertions.inc({ header: fact.header });
    this.log.debug({ ...fact }, 'assertion.ignored');
  }

  modelSwapped(fact: Parameters<port.Telemetry['modelSwapped']>[0]): void {
    this.metrics.swaps.inc();
    this.metrics.swapSeconds.inc(seconds(fact.swappedMs));
    this.log.info({ ...fact }, 'model.swapped');
  }

  aroundSeen(fact: Parameters<port.Telemetry['aroundSeen']>[0]): void {
    this.metrics.around.inc();
    this.log.warn({ ...fact }, 'gpu.used_around');
  }

  gpuIdled(fact: Parameters<port.Telemetry['gpuIdled']>[0]): void {
    this.metrics.idleGap.observe(seconds(fact.idleMs));
    this.log.debug({ ...fact }, 'gpu.idled');
  }

  orderChanged(fact: Parameters<port.Telemetry['orderChanged']>[0]): void {
    const labels = { term: fact.term, ...this.byBand(fact) };
    this.metrics.orderChanged.inc(labels);
    this.metrics.orderDelay.inc(labels, seconds(fact.delayedMs));
    this.log.debug({ ...fact }, 'order.changed');
  }

  etaMissed(fact: Parameters<port.Telemetry['etaMissed']>[0]): void {
    this.metrics.etaError.observe(seconds(Math.abs(fact.errorMs)));
    this.log.debug({ ...fact }, 'eta.missed');
  }

  leaseRenewed(fact: Parameters<port.Telemetry['leaseRenewed']>[0]): void {
    this.metrics.leaseRenewals.inc({ result: fact.result, trust: fact.trust });
  }

  staleAborted(fact: Parameters<port.Telemetry['staleAborted']>[0]): void {
    this.metrics.staleAborts.inc({ trust: fact.trust });
    this.log.warn({ ...fact }, 'lease.lost');
  }

  overCapacityEnded(fact: Parameters<port.Telemetry['overCapacityEnded']>[0]): void {
    this.metrics.overCapacity.inc({ outcome: fact.outcome });
    this.log.info({ ...fact }, 'job.over_capacity');
  }

  scorerPassed(fact: Parameters<port.Telemetry['scorerPassed']>[0]): void {
    this.metrics.scorerPass.observe(seconds(fact.passMs));
    this.log.info({ ...fact }, 'scorer.passed');
  }

  backlogSeen(fact: Parameters<port.Telemetry['backlogSeen']>[0]): void {
    for (const band of this.bands) {
      const backlog = Object.hasOwn(fact, band) ? fact[band] : undefined;
      this.metrics.queueDepth.set({ band }, backlog?.waiting ?? 0);
      this.metrics.oldestWait.set({ band }, seconds(backlog?.oldestWaitMs ?? 0));
    }
  }

  scorerAged(fact: Parameters<port.Telemetry['scorerAged']>[0]): void {
    this.metrics.scorerAge.set(seconds(fact.ageMs));
  }

  filmRepaired(fact: Parameters<port.Telemetry['filmRepaired']>[0]): void {
    this.metrics.filmRepairs.inc();
    this.log.warn({ ...fact }, 'film.repaired');
  }

  ledgerRebuilt(fact: Parameters<port.Telemetry['ledgerRebuilt']>[0]): void {
    this.metrics.ledgerRebuilds.inc();
    this.log.warn({ ...fact }, 'ledger.rebuilt');
  }

  redisDurabilitySeen(fact: port.RedisDurability): void {
    this.metrics.redisUnsafe.set({ fault: 'no_aof' }, fact.hasAof ? 0 : 1);
    this.metrics.redisUnsafe.set({ fault: 'evicting' }, fact.mayEvict ? 1 : 0);
    const isSafe = fact.hasAof && !fact.mayEvict;
    if (this.isNews('durability', fact)) {
      this.log[isSafe ? 'info' : 'error']({ ...fact }, 'redis.durability');
    }
  }

  policyCompared(fact: Parameters<port.Telemetry['policyCompared']>[0]): void {
    this.metrics.policyMismatch.set(fact.differs ? 1 : 0);
    if (this.isNews('policy', fact)) {
      this.log[fact.differs ? 'error' : 'info']({ ...fact }, 'policy.compared');
    }
  }

  modelsListed(fact: Parameters<port.Telemetry['modelsListed']>[0]): void {
    this.models.add(fact.modelIds);
  }

  private byBand({ band }: { band: string }): { band: string } {
    return { band: this.bands.has(band) ? band : 'other' };
  }

  private isNews(topic: string, fact: object): boolean {
    const told = JSON.stringify(fact);
    const isNews = this.lastTold.get(topic) !== told;
    this.lastTold.set(topic, told);
    return isNews;
  }
}

/** Never negative: a clock that stepped back must not throw where a counter only rises. */
function seconds(durationMs: number): number {
  return Math.max(0, durationMs) / 1000;
}
