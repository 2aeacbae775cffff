import { UnrecoverableError, WaitingError, Worker } from 'bullmq';
import type { Job } from 'bullmq';
import type { Redis } from 'ioredis';
import type { Ledger } from '../../policy/ledger.ts';
import type { LedgerEvent } from '../../policy/ledger-event.ts';
import type { Rules } from '../../policy/rules.ts';
import type { BodyStore } from '../../ports/body-store.ts';
import type { AttendShot, NextShot } from '../../ports/film-store.ts';
import { RunAborted } from '../../ports/job-queue.ts';
import type { ClaimedJob, JobFacts, RunJob, RunResult, TakenWork } from '../../ports/job-queue.ts';
import { FencedError } from '../../ports/response-log.ts';
import { composedBackend } from './composed-backend.ts';
import type { GpuOwner } from './gpu-owner.ts';
import { GpuPicker } from './gpu-picker.ts';
import { HandOver } from './hand-over.ts';
import { reconcile } from './journal-reconciler.ts';
import { LedgerMirror } from './ledger-mirror.ts';
import { GPU_QUEUE } from './keys.ts';
import type { PoolKeys } from './keys.ts';
import type { RedisClock } from './redis-clock.ts';
import { RedisResponseLogWriter } from './redis-response-log-writer.ts';
import { Scripts } from './scripts.ts';
import { settlementOf } from './run-end.ts';
import type { EndedRun, RunRetention } from './run-end.ts';
import { LOCK_MS, RunSettlement } from './run-settlement.ts';
import type { Reclaimed } from './run-settlement.ts';
import { watchRun } from './run-watch.ts';
import { keepWork } from './taken-work.ts';

/** What happened to a job at the worker, for telemetry. */
export interface RunReport {
  job: ClaimedJob;
  result: RunResult;
  ranMs: number;
}

/** The worker's surroundings. */
export interface BullGpuWorkerOptions {
  /** A `patient` connection. */
  redis: Redis;
  /** A `blocking` connection of the worker's own; it is closed by `stop`. */
  blocking: Redis;
  /** By what the next job is picked. */
  rules: Rules;
  /** The model in GPU memory; null when it is not known. */
  residentModel: () => string | null;
  keys: PoolKeys;
  clock: RedisClock;
  owner: GpuOwner;
  store: BodyStore;
  run: RunJob;
  /** Attends the runs of shots; without it films do not go on. */
  attend?: AttendShot;
  retention: RunRetention;
  onDispatch: (job: ClaimedJob, idleGapMs: number | undefined) => void;
  /** Called when a run's end is stored: only then may its request be given up. */
  onReport: (report: RunReport) => void;
  /** Called before each change of what waits or runs, with the ledger as it was. Must not change it. */
  onEvent?: (event: LedgerEvent, ledger: Ledger) => void;
  /** Part of a job's run so far in which the model server loaded its model, in ms. */
  loadedMs?: (jobId: string) => number;
  /** The ledger was lost and started over from the waiting jobs. */
  onRebuilt?: (waiting: number) => void;
  /** A pick had to be taken although something had happened since it was made: it may be out of turn. */
  onForced?: () => void;
  /** Somebody else owns the GPU. */
  onFenced: () => void;
  onError: (error: Error) => void;
}

/** How often the books are kept in Redis, in ms. */
const SAVE_MS = 5000;

/**
 * A normal BullMQ worker, one job at a time, whose fetch, finish and retry are Berth's scripts.
 * A job is settled exactly once, by `settle`, `postpone` or `handBack`; this class owns that.
 */
export class BullGpuWorker {
  private readonly options: BullGpuWorkerOptions;
  private readonly scripts: Scripts;
  private readonly settlement: RunSettlement;
  private readonly mirror: LedgerMirror;
  private readonly handOver: HandOver;
  private saving: NodeJS.Timeout | undefined;
  private savedToken = '';
  private readonly worker: Worker<JobFacts>;
  /** The job taken last; it stays here until the next one, so that a reclaim never takes one that is being settled. */
  private running: { id: string; abort: AbortController } | undefined;
  private lastRunEndedAt: number | undefined;

  constructor(options: BullGpuWorkerOptions) {
    this.options = options;
    this.scripts = new Scripts(options.redis);
    const handOver = new HandOver(options.onError);
    this.handOver = handOver;
    this.mirror = new LedgerMirror({
      ...options,
      pause: async () => handOver.over(),
      onRebuilt: (waiting) => {
        options.onRebuilt?.(waiting);
        void this.save(true);
      },
    });
    const { scripts, mirror } = this;
    const picker = new GpuPicker({
      mirror,
      handOver,
      residentModel: options.residentModel,
      nowMs: () => options.clock.latest(),
      reconcile: async () => {
        await reconcile({ ...options, scripts }, mirror.ledger);
      },
    });
    this.settlement = new RunSettlement({ ...options, scripts, picker, handOver });
    this.worker = new Worker<JobFacts>(
      GPU_QUEUE,
      async (job: Job<JobFacts>, token?: string) => this.process(job, token ?? ''),
      {
        connection: options.redis,
        prefix: options.keys.pool,
        concurrency: 1,
        autorun: false,
        lockDuration: LOCK_MS,
        // One owner, fenced: nobody else can be running our job, and orphans are reclaimed by us.
        skipStalledCheck: true,
        drainDelay: 5,
        runRetryDelay: 500,
        skipVersionCheck: true,
        settings: { backoffStrategy: () => this.settlement.backoffMs() },
      },
      composedBackend((backend) => this.settlement.overrides(backend)),
    );
    this.worker.on('error', (error) => options.onError(error));
    this.settlement.onIdle = (): void => {
      this.lastRunEndedAt = undefined;
    };
  }

  /** Reclaims what a dead predecessor left in `active`, then takes jobs. */
  async start(): Promise<Reclaimed> {
    await this.mirror.start();
    const reclaimed = await this.reclaim();
    this.saving = setInterval(() => void this.save(false), SAVE_MS);
    this.options.redis.on('ready', () => void this.reclaimAfterOutage());
    void this.worker.run().catch((error: unknown) => this.options.onError(asError(error)));
    return reclaimed;
  }

  /**
   * Takes no more jobs; what runs has until `graceMs`, then it is handed back to its place without using an
   * attempt. Resolves when nothing runs any more.
   */
  async stop(graceMs: number): Promise<void> {
    const handBack = setTimeout(
      () => this.running?.abort.abort(new RunAborted('shutting_down')),
      graceMs,
    );
    let giveUp: NodeJS.Timeout | undefined;
    // BullMQ's close waits for Redis, which may be away.
    const late = new Promise<void>((resolve) => (giveUp = setTimeout(resolve, graceMs + 300)));
    await Promise.race([this.worker.close(), late]);
    clearTimeout(handBack);
    clearTimeout(giveUp);
    clearInterval(this.saving);
    this.handOver.flush();
    if (this.options.redis.status === 'ready') await this.save(false);
    await this.mirror.stop();
  }

  /** Keeps what the model server took on for the running job; see `keepWork`. */
  async keepWork(jobId: string, work: TakenWork): Promise<void> {
    const { keys, owner } = this.options;
    await keepWork(jobId, work, { scripts: this.scripts, keys, owner });
  }

  /** Whether BullMQ's loop runs. */
  get isRunning(): boolean {
    return this.worker.isRunning();
  }

  private async save(isNew: boolean): Promise<void> {
    const { token } = this.mirror;
    if (!isNew && token === this.savedToken) return;
    this.savedToken = token;
    await this.mirror.save().catch((error: unknown) => this.options.onError(asError(error)));
  }

  private async reclaimAfterOutage(): Promise<void> {
    this.options.clock.distrust();
    await this.options.owner.beat();
    await this.reclaim().catch((error: unknown) => this.options.onError(asError(error)));
    await this.mirror.check().catch((error: unknown) => this.options.onError(asError(error)));
  }

  /** Jobs locked for this worker stay: they run, or the fetch whose reply was lost is about to be repeated. */
  private async reclaim(): Promise<Reclaimed> {
    const keep = this.running === undefined ? {} : { keep: this.running.id };
    return this.settlement.handBack({ worker: this.worker.id, ...keep });
  }

  private async process(job: Job<JobFacts>, token: string): Promise<void> {
    const claimed = this.settlement.claimed(job);
    const abort = new AbortController();
    this.running = { id: claimed.id, abort };
    const endWatch = watchRun(claimed.id, abort, { ...this.options, scripts: this.scripts });
    const startedAt = performance.now();
    const idleMs = this.lastRunEndedAt === undefined ? undefined : startedAt - this.lastRunEndedAt;
    this.handOver.after(() => this.options.onDispatch(claimed, idleMs));
    const log = new RedisResponseLogWriter({
      scripts: this.scripts,
      keys: this.options.keys,
      store: this.options.store,
      jobId: claimed.id,
      run: claimed.run,
      fence: this.options.owner.fence,
    });
    const shot = this.options.attend?.(claimed, log);
    let next: NextShot | undefined;
    let result: RunResult;
    try {
      result = await this.options.run(claimed, shot?.log ?? log, abort.signal);
      const fault = result.kind === 'completed' ? shot?.fault() : undefined;
      if (fault !== undefined) result = { kind: 'failed', ...fault };
      if (result.kind === 'completed') next = await shot?.next();
      if (result.kind === 'completed' || result.kind === 'failed') await log.drain();
    } catch (error) {
      if (error instanceof FencedError) this.options.onFenced();
      else this.options.onError(asError(error));
      result = {
        kind: 'failed',
        code: 'internal_error',
        message: 'the gateway failed while running the job',
      };
    } finally {
      endWatch();
    }
    if (result.kind !== 'completed') await log.discard();
    const ranMs = claimed.ranBeforeMs + Math.max(0, Math.round(performance.now() - startedAt));
    this.lastRunEndedAt = performance.now();
    const report = (): void => this.options.onReport({ job: claimed, result, ranMs });
    const loadedMs = this.options.loadedMs?.(claimed.id) ?? 0;
    const run = { job: claimed, token, log, result, ranMs, loadedMs, next, onStored: report };
    await this.conclude(run);
  }

  private async conclude(run: EndedRun): Promise<void> {
    const { job, token, result, ranMs, onStored } = run;
    if (result.kind === 'handed-back') {
      await this.settlement.handBack({ only: job.id });
      onStored();
      throw new WaitingError();
    }
    if (result.kind === 'retry') {
      const { delayMs, code } = result;
      const postponed = { kind: 'postpone' as const, id: job.id, token, delayMs, gpuMs: ranMs };
      this.settlement.expect({ ...postponed, onStored });
      throw new Error(code);
    }
    this.settlement.expect(settlementOf(run, result, this.options.retention));
    if (result.kind !== 'completed') throw new UnrecoverableError(result.code);
  }
}

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error(String(error));
