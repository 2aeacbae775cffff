import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { createTelemetry, type ProcessTelemetry } from '../../src/adapters/telemetry/telemetry.ts';

const config = loadConfig({ LOG_LEVEL: 'silent' });
const opened: ProcessTelemetry[] = [];
afterEach(() => opened.splice(0).forEach((telemetry) => telemetry.close()));

const job = { jobId: 'j-1', memberId: 'ann', band: 'batch', model: 'llama' };
const run = { ...job, kind: 'text', attempt: 1 } as const;

describe('the metrics of a process', () => {
  test('exist at 0 for every closed label from the start', async () => {
    const gpu = await values(open('gpu'));
    for (const band of ['batch', 'normal', 'interactive']) {
      expect(gpu.get(`berth_dispatches_total{band="${band}",process="gpu"}`)).toBe(0);
      expect(gpu.get(`berth_wait_seconds_count{band="${band}",process="gpu"}`)).toBe(0);
      for (const outcome of ['completed', 'failed', 'cancelled', 'evicted', 'expired']) {
        expect(gpu.get(`berth_jobs_total{band="${band}",outcome="${outcome}",process="gpu"}`)).toBe(
          0,
        );
      }
      for (const term of ['aging', 'affinity', 'fairness', 'tier']) {
        expect(
          gpu.get(`berth_order_changed_total{term="${term}",band="${band}",process="gpu"}`),
        ).toBe(0);
      }
    }
    expect(gpu.get('berth_stale_aborts_total{trust="untrusted",process="gpu"}')).toBe(0);
    expect(gpu.get('berth_retries_total{code="lease_lapsed",process="gpu"}')).toBe(0);
    expect(gpu.get('berth_gpu_idle_gap_seconds_count{process="gpu"}')).toBe(0);
    const ingress = await values(open('ingress'));
    expect(ingress.get('berth_rejections_total{code="queue_full",process="ingress"}')).toBe(0);
    expect(ingress.get('berth_redis_unsafe{fault="no_aof",process="ingress"}')).toBe(0);
    const scorer = await values(open('scorer'));
    expect(scorer.get('berth_queue_depth{band="batch",process="scorer"}')).toBe(0);
  });

  test('are shown only by the process whose they are, until another has something to tell', async () => {
    const ingress = open('ingress');
    expect(
      [...(await values(ingress)).keys()].filter((key) => /queue_depth|swaps|idle/.test(key)),
    ).toEqual([]);
    ingress.modelSwapped({ model: 'llama', swappedMs: 2500 });
    const after = await values(ingress);
    expect(after.get('berth_swaps_total{process="ingress"}')).toBe(1);
    expect(after.get('berth_swap_seconds_total{process="ingress"}')).toBe(2.5);
  });

  test('follow a job from admission to its outcome', async () => {
    const gpu = open('gpu');
    gpu.modelsListed({ modelIds: ['llama'] });
    gpu.jobAdmitted({
      ...job,
      tier: 'pro',
      kind: 'text',
      basePriority: -100,
      bodyBytes: 9,
      isAsync: false,
    });
    gpu.jobDispatched({ ...run, tier: 'pro', waitedMs: 4000 });
    gpu.jobRetried({ ...run, code: 'model_server_unreachable', ranMs: 500, delayMs: 1000 });
    gpu.jobDispatched({ ...run, tier: 'pro', attempt: 2, waitedMs: 5500 });
    gpu.jobHandedBack({ jobId: 'j-1', because: 'shutting_down', ranMs: 1000 });
    gpu.jobDispatched({ ...run, tier: 'pro', attempt: 2, waitedMs: 6500 });
    gpu.jobSettled({ ...run, outcome: 'completed', attempt: 2, ranMs: 2000, waitedMs: 6500 });
    const after = await values(gpu);
    expect(after.get('berth_admissions_total{band="batch",process="gpu"}')).toBe(1);
    expect(after.get('berth_dispatches_total{band="batch",process="gpu"}')).toBe(3);
    expect(after.get('berth_wait_seconds_count{band="batch",process="gpu"}')).toBe(1);
    expect(after.get('berth_wait_seconds_sum{band="batch",process="gpu"}')).toBe(4);
    expect(after.get('berth_retries_total{code="model_server_unreachable",process="gpu"}')).toBe(1);
    expect(after.get('berth_hand_backs_total{because="shutting_down",process="gpu"}')).toBe(1);
    expect(after.get('berth_gpu_busy_seconds_total{process="gpu"}')).toBe(3.5);
    expect(after.get('berth_run_seconds_sum{model="llama",kind="text",process="gpu"}')).toBe(2);
    expect(after.get('berth_jobs_total{band="batch",outcome="completed",process="gpu"}')).toBe(1);
  });

  test('count a failed run as busy time but not as the duration of a completed one', async () => {
    const gpu = open('gpu');
    gpu.jobSettled({
      ...run,
      outcome: 'failed',
      code: 'lease_lapsed',
      ranMs: 150_000,
      waitedMs: 0,
    });
    gpu.jobSettled({
      ...job,
      kind: 'text',
      outcome: 'evicted',
      code: 'client_closed',
      waitedMs: 9,
    });
    const after = await values(gpu);
    expect(after.get('berth_gpu_busy_seconds_total{process="gpu"}')).toBe(150);
    expect(after.get('berth_run_seconds_count{model="other",kind="text",process="gpu"}')).toBe(0);
    expect(after.get('berth_jobs_total{band="batch",outcome="evicted",process="gpu"}')).toBe(1);
  });

  test('follow every other fact', async () => {
    const it = open('gpu');
    it.jobRejected({ code: 'queue_full' });
    it.priorityNoticed({ notice: 'intent_unknown' });
    it.assertionIgnored({ header: 'tier' });
    it.gpuIdled({ idleMs: 3 });
    it.orderChanged({ term: 'tier', band: 'batch', delayedMs: 700 });
    it.etaMissed({ errorMs: -2000 });
    it.leaseRenewed({ result: 'at_cap', trust: 'trusted' });
    it.staleAborted({ jobId: 'j-1', trust: 'untrusted' });
    it.overCapacityEnded({ jobId: 'j-1', outcome: 'completed' });
    it.scorerPassed({ passMs: 20, waiting: 1, rewritten: 0 });
    it.scorerAged({ ageMs: 61_000 });
    it.ledgerRebuilt({ waiting: 3 });
    it.filmRepaired({ filmId: 'f-1' });
    it.redisDurabilitySeen({ hasAof: false, mayEvict: true });
    it.policyCompared({ differs: true, ours: 'a', workers: 'b' });
    it.backlogSeen({ batch: { waiting: 4, oldestWaitMs: 1500 } });
    const after = await values(it);
    expect(
      [
        'berth_rejections_total{code="queue_full"',
        'berth_priority_notices_total{notice="intent_unknown"',
        'berth_ignored_assertions_total{header="tier"',
        'berth_gpu_idle_gap_seconds_sum{',
        'berth_order_changed_total{term="tier",band="batch"',
        'berth_order_delay_seconds_total{term="tier",band="batch"',
        'berth_eta_error_seconds{quantile="0.5"',
        'berth_lease_renewals_total{result="at_cap",trust="trusted"',
        'berth_stale_aborts_total{trust="untrusted"',
        'berth_over_capacity_dispatches_total{outcome="completed"',
        'berth_scorer_pass_seconds_sum{',
        'berth_scorer_age_seconds{',
        'berth_ledger_rebuilds_total{',
        'berth_film_repairs_total{',
        'berth_redis_unsafe{fault="no_aof"',
        'berth_redis_unsafe{fault="evicting"',
        'berth_policy_mismatch{',
        'berth_queue_depth{band="batch"',
        'berth_oldest_wait_seconds{band="batch"',
        'berth_queue_depth{band="normal"',
      ].map((start) => [...after].find(([series]) => series.startsWith(start))?.[1]),
    ).toEqual([1, 1, 1, 0.003, 1, 0.7, 2, 1, 1, 1, 0.02, 61, 1, 1, 1, 1, 1, 4, 1.5, 0]);
  });

  test('take states back', async () => {
    const it = open('ingress');
    it.redisDurabilitySeen({ hasAof: false, mayEvict: true });
    it.redisDurabilitySeen({ hasAof: true, mayEvict: false });
    it.backlogSeen({ batch: { waiting: 4, oldestWaitMs: 1500 } });
    it.backlogSeen({});
    const after = await values(it);
    expect(after.get('berth_redis_unsafe{fault="no_aof",process="ingress"}')).toBe(0);
    expect(after.get('berth_redis_unsafe{fault="evicting",process="ingress"}')).toBe(0);
    expect(after.get('berth_queue_depth{band="batch",process="ingress"}')).toBe(0);
  });

  test('keep every number up when a duration is negative', async () => {
    const gpu = open('gpu');
    gpu.jobSettled({ ...run, outcome: 'completed', ranMs: -5, waitedMs: -1 });
    expect((await values(gpu)).get('berth_gpu_busy_seconds_total{process="gpu"}')).toBe(0);
  });

  test('have no more series after ten thousand unlisted models, members and bands', async () => {
    const gpu = open('gpu');
    gpu.jobSettled({ ...run, band: 'gone', outcome: 'completed', ranMs: 1, waitedMs: 1 });
    const before = (await values(gpu)).size;
    for (let index = 0; index < 10_000; index += 1) {
      const stranger = {
        jobId: `${index}`,
        memberId: `m${index}`,
        band: `b${index}`,
        model: `x${index}`,
      };
      gpu.jobSettled({ ...run, ...stranger, outcome: 'completed', ranMs: 1, waitedMs: 1 });
    }
    expect((await values(gpu)).size).toBe(before);
  });

  test('know the first hundred listed models and call the others other', async () => {
    const gpu = open('gpu');
    gpu.modelsListed({ modelIds: Array.from({ length: 99 }, (_, index) => `m${index}`) });
    gpu.modelsListed({ modelIds: ['m0', 'late', 'later'] });
    for (const model of ['m0', 'late', 'later', 'constructor']) {
      gpu.jobSettled({ ...run, model, outcome: 'completed', ranMs: 1000, waitedMs: 1 });
    }
    const after = await values(gpu);
    const count = (model: string) =>
      after.get(`berth_run_seconds_count{model="${model}",kind="text",process="gpu"}`);
    expect([count('m0'), count('late'), count('later'), count('other')]).toEqual([
      1,
      1,
      undefined,
      2,
    ]);
  });

  test('show the process itself', async () => {
    const after = await values(open('scorer'));
    expect(after.get('berth_process_cpu_seconds_total{process="scorer"}')).toBeGreaterThan(0);
    expect(
      after.get('berth_process_memory_bytes{area="resident",process="scorer"}'),
    ).toBeGreaterThan(1e6);
    expect(
      after.get('berth_process_event_loop_lag_seconds{quantile="0.99",process="scorer"}'),
    ).toBeGreaterThanOrEqual(0);
  });

  test('are all in the reference, with their labels, and the reference names no other', async () => {
    const page = readFileSync('docs/operations/metrics.md', 'utf8');
    const documented = [...page.matchAll(/^\| `(berth_\w+)` \| ([^|]*)\|/gm)].map((match) => ({
      name: match[1],
      labels: (match[2] ?? '')
        .split(',')
        .map((label) => label.trim())
        .filter((label) => label !== ''),
    }));
    const exported = JSON.parse(await open('gpu').exportRegistry()) as {
      name: string;
      type: string;
    }[];
    expect(documented.map(({ name }) => name).sort()).toEqual(
      exported.map(({ name }) => name).sort(),
    );
    const series = await allSeries();
    for (const { name, labels } of documented) {
      const found = series.find((each) => each.replace(/_count(?=\{)/, '').startsWith(`${name}{`));
      const sample = [...(found ?? '').matchAll(/(\w+)="/g)].map((match) => match[1]);
      expect({ name, labels: sample }).toEqual({ name, labels: [...labels, 'process'] });
    }
  });
});

function open(process: 'ingress' | 'gpu' | 'scorer'): ProcessTelemetry {
  const telemetry = createTelemetry({ process, config });
  opened.push(telemetry);
  return telemetry;
}

/** Every series of an exposition with its value. */
async function values(telemetry: ProcessTelemetry): Promise<Map<string, number>> {
  const lines = (await telemetry.exposition()).split('\n').filter((line) => /^\w/.test(line));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

async function allSeries(): Promise<string[]> {
  const maps = await Promise.all((['ingress', 'gpu', 'scorer'] as const).map(open).map(values));
  return maps.flatMap((map) => [...map.keys()]);
}
