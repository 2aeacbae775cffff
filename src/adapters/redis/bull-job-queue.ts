import { setImmediate as turnOver } from 'node:timers/promises';
import { Queue } from 'bullmq';
import type { RedisQueueBackend } from 'bullmq';
import type { Redis } from 'ioredis';
import pLimit from 'p-limit';
import { GatewayError } from '../../errors.ts';
import type {
  AbandonFate,
  JobFacts,
  JobPlace,
  JobQueue,
  NewJob,
  Submitted,
} from '../../ports/job-queue.ts';
import { bullClass } from './bull-class.ts';
import { composedBackend } from './composed-backend.ts';
import { openFacts } from './journal-entry.ts';
import { termsJson } from './shot-json.ts';
import { JobPlaces } from './job-places.ts';
import { GPU_QUEUE } from './keys.ts';
import type { PoolKeys } from './keys.ts';
import { Scripts } from './scripts.ts';

/** What the queue needs to know beside its connection. */
export interface BullJobQueueOptions {
  /** A `prompt` connection; the caller closes it. */
  redis: Redis;
  keys: PoolKeys;
  /** This ingress; its sync jobs are evicted when its liveness key is gone. */
  ingressId: string;
  /** Most jobs that may wait in the pool. */
  waitingCap: number;
  /** Most attempts a job gets before its failure is final. */
  maxAttempts: number;
  keep: KeepTimes;
}

/** How long things outlive what they belong to, in ms. */
export interface KeepTimes {
  /** A sync job with an Idempotency-Key its last connection. */
  graceMs: number;
  /** An Idempotency-Key its job's end. */
  keyMs: number;
  /** The record of a sync job that ended before it ran, its end. */
  syncMs: number;
  /** The same of any other job. */
  asyncMs: number;
}

/** A submission under way, and what the script said of it. */
interface Submitting {
  job: NewJob;
  stored: Submitted | undefined;
  refusal: string;
}

/**
 * Submissions on their way to Redis at once. More of them would not be stored sooner; but the answers to a great burst
 * would come in after the time a command is given, on a machine that is busy.
 */
const SUBMITTING_AT_ONCE = 64;

type AddArguments = [job: { id?: string }, encodedOpts: unknown, args: unknown[], keys?: unknown];

/** BullMQ builds the script's arguments in a protected method; the text they belong to is pinned and checked. */
interface ArgumentBuilder {
  addPrioritizedJobArgs(...args: AddArguments): (string | Buffer)[];
}

/** BullMQ's event stream is a hint for its own tools; keep it short. */
export const BULL_STREAMS = { events: { maxLen: 1000 } } as const;

/** The gpu queue as an ingress uses it: real BullMQ jobs, each added together with its request in one step. */
export class BullJobQueue implements JobQueue {
  readonly queue: Queue<JobFacts>;
  private readonly options: BullJobQueueOptions;
  private readonly scripts: Scripts;
  private readonly places: JobPlaces;
  private readonly inTurn = pLimit(SUBMITTING_AT_ONCE);
  private readonly submitting = new Map<string, Submitting>();
  /** What got no answer and is to be done once Redis is back, by job or connection. */
  private readonly doubts = new Map<string, () => Promise<unknown>>();

  constructor(options: BullJobQueueOptions) {
    this.options = options;
    this.scripts = new Scripts(options.redis);
    this.places = new JobPlaces(options.redis, options.keys);
    this.queue = new Queue<JobFacts>(
      GPU_QUEUE,
      {
        connection: options.redis,
        prefix: options.keys.pool,
        streams: BULL_STREAMS,
        skipVersionCheck: true,
      },
      composedBackend((backend) => ({
        addPrioritizedJob: (_client: unknown, ...args: AddArguments) =>
          this.addWithRequest(backend, args),
        retryFinishedJob: async (job: { id?: string }) => this.revive(job.id ?? ''),
      })),
    );
    // Connection faults surface where a command fails; the emitter must not throw them a second time.
    this.queue.on('error', () => undefined);
  }

  async submit(job: NewJob): Promise<Submitted> {
    return this.inTurn(async () => {
      // A turn that handles a burst of requests is long; time counts from its end.
      await turnOver();
      return this.add(job);
    });
  }

  private async add(job: NewJob): Promise<Submitted> {
    this.requireRedis();
    const entry: Submitting = { job, stored: undefined, refusal: '' };
    this.submitting.set(job.id, entry);
    try {
      await this.queue.add(job.facts.route, job.facts, {
        jobId: job.id,
        priority: bullClass(job.points),
        attempts: this.options.maxAttempts,
        backoff: { type: 'berth' },
        stackTraceLimit: 0,
      });
    } catch (error) {
      if (error instanceof GatewayError) throw error;
      this.takeBack(job);
      throw unavailable(error, true);
    } finally {
      this.submitting.delete(job.id);
    }
    if (entry.stored === undefined) throw refused(entry.refusal);
    return entry.stored;
  }

  async abandon(jobId: string, code: 'client_closed' | 'cancelled'): Promise<AbandonFate> {
    const { keys } = this.options;
    try {
      const own = JSON.stringify({ pool: keys.pool, queue: keys.queue, code });
      const fates = (await this.scripts.run('abandon', keys.pool, own, jobId)) as AbandonFate[];
      this.doubts.delete(jobId);
      return fates[0] ?? 'settled';
    } catch (error) {
      this.doubts.set(jobId, async () => this.abandon(jobId, code));
      throw unavailable(error);
    }
  }

  async detach(jobId: string, client: string): Promise<void> {
    const { keys, keep } = this.options;
    const { pool, queue } = keys;
    const own = JSON.stringify({ pool, queue, id: jobId, client, graceMs: keep.graceMs });
    try {
      await this.scripts.run('detach', pool, own);
      this.doubts.delete(client);
    } catch (error) {
      this.doubts.set(client, async () => this.detach(jobId, client));
      throw unavailable(error);
    }
  }

  /** Does again what got no answer before; call it whenever Redis answers. Returns how much is left. */
  async settleDoubts(): Promise<number> {
    for (const settle of [...this.doubts.values()]) await settle();
    return this.doubts.size;
  }

  async inspect(jobIds: readonly string[]): Promise<JobPlace[]> {
    try {
      return await Promise.all(jobIds.map(async (id) => this.places.of(id)));
    } catch (error) {
      throw unavailable(error);
    }
  }

  /** Closes BullMQ's side; the connection stays the caller's. */
  async close(): Promise<void> {
    await this.queue.close();
  }

  /**
   * A submission got no answer, so its client was told that it failed; its job may be stored all the same. Nobody can come
   * back for one without a key: it is given up. With a key a repeat may have been told of it by now: a sync job has its
   * time of grace, as when its connection breaks, and an async one runs, as when the ingress dies before its answer.
   */
  private takeBack({ id, facts, idempotency }: NewJob): void {
    if (idempotency === undefined)
      this.doubts.set(id, async () => this.abandon(id, 'client_closed'));
    else if (facts.mode === 'sync') this.doubts.set(id, async () => this.detach(id, id));
  }

  private requireRedis(): void {
    if (this.options.redis.status !== 'ready') throw unavailable(new Error('not connected'));
  }

  private async addWithRequest(backend: RedisQueueBackend, args: AddArguments): Promise<string> {
    const id = String(args[0].id);
    const entry = this.submitting.get(id);
    if (entry === undefined) throw new Error('jobs are added by submit() alone');
    const { job: newJob } = entry;
    const { keys: pool, ingressId, waitingCap, keep } = this.options;
    const { facts, idempotency } = newJob;
    const own = JSON.stringify({
      pool: pool.pool,
      queue: pool.queue,
      id,
      cls: bullClass(newJob.points),
      band: facts.band,
      waitingCap,
      facts: openFacts(facts),
      member: facts.member,
      bytes: facts.bodyBytes,
      ...(newJob.caps.waiting === null ? {} : { memberWaiting: newJob.caps.waiting }),
      ...(newJob.caps.bytes === null ? {} : { memberBytes: newJob.caps.bytes }),
      ...(facts.mode === 'sync' ? { ingress: ingressId, client: id } : {}),
      ...(idempotency === undefined
        ? {}
        : { key: idempotency.name, request: idempotency.request, keyMs: keep.keyMs }),
      keepMs: facts.mode === 'sync' ? keep.syncMs : keep.asyncMs,
      ...termsJson(newJob),
    });
    const bull = (backend as unknown as ArgumentBuilder).addPrioritizedJobArgs(...args);
    const reply = await this.scripts.run(
      'submit',
      ...bull,
      own,
      newJob.sealedHead,
      newJob.body ?? Buffer.alloc(0),
    );
    if (Array.isArray(reply)) {
      const [jobId, arrival, nowMs, whose] = reply.map(String);
      entry.stored = {
        jobId: String(jobId),
        arrival: Number(arrival),
        nowMs: Number(nowMs),
        isNew: whose === 'new',
      };
    } else entry.refusal = String(reply);
    return id;
  }

  private async revive(jobId: string): Promise<void> {
    const { keys } = this.options;
    const own = JSON.stringify({ pool: keys.pool, queue: keys.queue, id: jobId });
    const reply = await this.scripts.run('revive', keys.pool, own);
    if (reply === 'gone') throw new GatewayError('job_not_found', 'there is no such failed job');
    if (reply === 'cannot')
      throw new GatewayError('result_gone', 'the request of this job is not kept any more');
  }
}

function refused(why: string): GatewayError {
  switch (why) {
    case 'member_full':
      return new GatewayError('member_queue_full', 'too many of your jobs are waiting', {
        retryAfterSeconds: 30,
      });
    case 'mismatch':
      return new GatewayError(
        'idempotency_mismatch',
        'this Idempotency-Key was used for another request',
        { param: 'Idempotency-Key' },
      );
    default:
      return new GatewayError('queue_full', 'too many jobs are waiting', { retryAfterSeconds: 60 });
  }
}

/**
 * Translates whatever ioredis or BullMQ threw into the one thing a client can act on. `isUncertain`: a command whose answer
 * did not come may have been carried out.
 */
export function unavailable(cause: unknown, isUncertain = false): GatewayError {
  const text = cause instanceof Error ? cause.message : '';
  if (text.startsWith('OOM')) {
    return new GatewayError('memory_full', 'Redis has no memory left for new jobs', {
      cause,
      retryAfterSeconds: 30,
    });
  }
  if (text.startsWith('MISCONF')) {
    return new GatewayError('storage_full', 'Redis cannot write to its disk', {
      cause,
      retryAfterSeconds: 30,
    });
  }
  return new GatewayError('redis_unavailable', 'the queue is not reachable right now', {
    cause,
    isUncertain,
    retryAfterSeconds: 2,
  });
}
