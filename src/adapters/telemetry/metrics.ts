import type { Registry } from 'prom-client';
import { MetricFactory, type ProcessKind } from './metric-factory.ts';
import { rejectionLabels, retryLabels } from './code-labels.ts';
import { terms } from '../../policy/effective-priority.ts';
import { outcomes } from '../../policy/outcome.ts';
import { priorityNotices } from '../../policy/priority.ts';

/** Seconds; from a job that goes at once to a film's last shot. */
const waitBuckets = [
  0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200,
];
/** Seconds; from an embedding to a long video shot. */
const runBuckets = [0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600];
/** Seconds; fine where the dispatch itself lies, coarse where something is wrong. */
const gapBuckets = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 5];
const passBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const trusts = ['trusted', 'untrusted'];
const kinds = ['text', 'image', 'audio', 'video', 'other'];

/** The metrics of one process; `docs/operations/metrics.md` says what each is good for. */
export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Registers every metric, the closed label sets of its own ones at 0.
 *
 * @param bands - names of the configured bands
 */
export function createMetrics(registry: Registry, process: ProcessKind, bands: readonly string[]) {
  const byBand = { band: bands };
  const create = new MetricFactory(registry, process);
  const gpu = { owners: ['gpu'] } as const;
  const ingress = { owners: ['ingress'] } as const;
  const scorer = { owners: ['scorer'] } as const;
  const all = { owners: ['ingress', 'gpu', 'scorer'] } as const;
  return {
    queueDepth: create.gauge({
      name: 'berth_queue_depth',
      help: 'Waiting jobs, as of the last scorer pass.',
      labels: byBand,
      ...scorer,
    }),
    oldestWait: create.gauge({
      name: 'berth_oldest_wait_seconds',
      help: 'Wait of the oldest waiting job, as of the last scorer pass.',
      labels: byBand,
      ...scorer,
    }),
    wait: create.histogram(
      {
        name: 'berth_wait_seconds',
        help: 'From admission to the first dispatch.',
        labels: byBand,
        ...gpu,
      },
      waitBuckets,
    ),
    admissions: create.counter({
      name: 'berth_admissions_total',
      help: 'Requests that became a job.',
      labels: byBand,
      ...ingress,
    }),
    dispatches: create.counter({
      name: 'berth_dispatches_total',
      help: 'Attempts sent to the model server.',
      labels: byBand,
      ...gpu,
    }),
    orderChanged: create.counter({
      name: 'berth_order_changed_total',
      help: 'Dispatches that would have gone to another job without this term.',
      labels: { term: terms, ...byBand },
      ...gpu,
    }),
    orderDelay: create.counter({
      name: 'berth_order_delay_seconds_total',
      help: 'Delay of the jobs that would have gone first without this term.',
      labels: { term: terms, ...byBand },
      ...gpu,
    }),
    around: create.counter({
      name: 'berth_around_requests_total',
      help: 'Requests that reached the model server without Berth.',
      ...gpu,
    }),
    swaps: create.counter({
      name: 'berth_swaps_total',
      help: 'Times the model server loaded another model for a job.',
      ...gpu,
    }),
    swapSeconds: create.counter({
      name: 'berth_swap_seconds_total',
      help: 'Time spent loading models for jobs.',
      ...gpu,
    }),
    run: create.histogram(
      {
        name: 'berth_run_seconds',
        help: 'GPU time of completed jobs, the swap they forced included.',
        labels: { model: ['other'], kind: kinds },
        ...gpu,
      },
      runBuckets,
    ),
    gpuBusy: create.counter({
      name: 'berth_gpu_busy_seconds_total',
      help: 'GPU time used by attempts of any end.',
      ...gpu,
    }),
    idleGap: create.histogram(
      {
        name: 'berth_gpu_idle_gap_seconds',
        help: 'From the end of a run to the next dispatch while a job was waiting.',
        ...gpu,
      },
      gapBuckets,
    ),
    leaseRenewals: create.counter({
      name: 'berth_lease_renewals_total',
      help: 'Pieces of output that moved the end of a lease, or would have but for the cap.',
      labels: { result: ['granted', 'at_cap'], trust: trusts },
      ...gpu,
    }),
    staleAborts: create.counter({
      name: 'berth_stale_aborts_total',
      help: 'Attempts aborted because their lease lapsed.',
      labels: { trust: trusts },
      ...gpu,
    }),
    overCapacity: create.counter({
      name: 'berth_over_capacity_dispatches_total',
      help: "Ended jobs that asked for more output than the worker's speed gives in time.",
      labels: { outcome: outcomes },
      ...gpu,
    }),
    retries: create.counter({
      name: 'berth_retries_total',
      help: 'Failed attempts that are followed by another.',
      labels: { code: retryLabels },
      ...gpu,
    }),
    handBacks: create.counter({
      name: 'berth_hand_backs_total',
      help: 'Attempts that went back to the queue without being used up.',
      labels: { because: ['shutting_down', 'orphaned', 'stalled'] },
      ...gpu,
    }),
    jobs: create.counter({
      name: 'berth_jobs_total',
      help: 'Jobs that reached their outcome.',
      labels: { ...byBand, outcome: outcomes },
      ...all,
    }),
    rejections: create.counter({
      name: 'berth_rejections_total',
      help: 'Requests refused before they became a job.',
      labels: { code: rejectionLabels },
      ...ingress,
    }),
    requests: create.counter({
      name: 'berth_requests_total',
      help: "Requests to the model server's routes by what their clients got; 499: the client left.",
      labels: { status: ['2xx', '3xx', '4xx', '499', '5xx'] },
      ...ingress,
    }),
    priorityNotices: create.counter({
      name: 'berth_priority_notices_total',
      help: 'Priority or intent headers that were unreadable, unknown or clamped.',
      labels: { notice: priorityNotices },
      ...ingress,
    }),
    ignoredAssertions: create.counter({
      name: 'berth_ignored_assertions_total',
      help: 'Member or tier headers ignored because the key may not assert them.',
      labels: { header: ['member', 'tier'] },
      ...ingress,
    }),
    scorerAge: create.gauge(
      {
        name: 'berth_scorer_age_seconds',
        help: 'Time since the last scorer pass.',
        ...ingress,
      },
      'max',
    ),
    scorerPass: create.histogram(
      { name: 'berth_scorer_pass_seconds', help: 'Duration of a scorer pass.', ...scorer },
      passBuckets,
    ),
    webhooks: create.counter({
      name: 'berth_webhooks_total',
      help: 'Attempts to tell of the end of a job; given_up: the end was not told.',
      labels: { result: ['delivered', 'retried', 'given_up'] },
      ...scorer,
    }),
    filmRepairs: create.counter({
      name: 'berth_film_repairs_total',
      help: 'Running films whose shot was lost and put back.',
      ...scorer,
    }),
    ledgerRebuilds: create.counter({
      name: 'berth_ledger_rebuilds_total',
      help: 'Times the ledger was lost and rebuilt from the jobs.',
      owners: ['gpu', 'scorer'],
    }),
    redisUnsafe: create.gauge(
      {
        name: 'berth_redis_unsafe',
        help: '1 while Redis may lose jobs: no append-only file, or a policy that evicts keys.',
        labels: { fault: ['no_aof', 'evicting'] },
        ...ingress,
      },
      'max',
    ),
    policyMismatch: create.gauge(
      {
        name: 'berth_policy_mismatch',
        help: "1 while this process runs another policy configuration than the worker's.",
        owners: ['ingress', 'scorer'],
      },
      'max',
    ),
    etaError: create.summary({
      name: 'berth_eta_error_seconds',
      help: 'Absolute error of the ETA given at admission, over the last hour.',
      ...scorer,
    }),
  };
}
