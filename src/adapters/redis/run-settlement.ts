import { raw2NextJobData } from 'bullmq';
import { Packr } from 'msgpackr';
import type { Job, RedisQueueBackend } from 'bullmq';
import type { Rules } from '../../policy/rules.ts';
import type { ClaimedJob, JobFacts } from '../../ports/job-queue.ts';
import type { GpuOwner } from './gpu-owner.ts';
import type { GpuPicker, Nomination } from './gpu-picker.ts';
import type { HandOver } from './hand-over.ts';
import type { PoolKeys } from './keys.ts';
import type { RedisClock } from './redis-clock.ts';
import type { Postponement, Settlement } from './run-end.ts';
import type { ScriptArgument, Scripts } from './scripts.ts';
import {
  bullReplyIn,
  entriesIn,
  isDrift,
  isRefused,
  requestIn,
  timeIn,
} from './settlement-reply.ts';
import type { SettlementReply } from './settlement-reply.ts';
import { arrivingShot, offerOf } from './shot-json.ts';
import { parseWork } from './taken-work.ts';

/** As BullMQ packs what its scripts read. */
const packer = new Packr({ useRecords: false, encodeUndefinedAsNil: true });

interface Surroundings {
  scripts: Scripts;
  keys: PoolKeys;
  clock: RedisClock;
  owner: GpuOwner;
  picker: GpuPicker;
  handOver: HandOver;
  rules: Rules;
  retention: { completedMs: number; failedMs: number };
  onFenced: () => void;
  /** A pick had to be taken although something had happened since it was made. */
  onForced?: () => void;
}

/**
 * Nominations after which the next one is taken even if something happened since it was made. Three thousand arrivals a
 * second outdate three nominations of four: this many in a row happen to nobody, and a stream that is denser yet cannot
 * keep the GPU idle for longer than some tenths of a second.
 */
const FORCED_AFTER = 200;
/** How long BullMQ's lock of a running job lasts unless it is renewed, in ms. */
export const LOCK_MS = 60_000;

/** What became of jobs whose worker is gone, by their ids. */
export interface Reclaimed {
  /** They wait again, at their place. */
  back: string[];
  failed: string[];
  /** They are handed out to this worker next: the model server is still at their work. */
  taken: string[];
}

type BackendArguments = (string | number | Buffer | undefined)[];

/** BullMQ builds these scripts' arguments in protected methods; the texts they belong to are pinned and checked. */
interface ArgumentBuilder {
  moveToDelayedArgs(
    id: string,
    timestamp: number,
    token: string,
    delay: number,
    opts: object,
  ): BackendArguments;
}

/**
 * The three exits of `active` and the way in, as overrides of BullMQ's backend. The processor says with `expect`
 * how the run ended; BullMQ then calls its finish, which arrives here as one idempotent script.
 */
export class RunSettlement {
  /** Called when a fetch found nothing to run. */
  onIdle: () => void = () => undefined;
  private readonly around: Surroundings;
  private expected: Settlement | Postponement | undefined;
  private readonly payloads = new Map<string, { fields: Map<string, Buffer>; nowMs: number }>();

  constructor(around: Surroundings) {
    this.around = around;
  }

  /** Announces how the job that is about to leave the processor ended. */
  expect(end: Settlement | Postponement): void {
    this.expected = end;
  }

  /** The backoff of the retry announced last, in ms. */
  backoffMs(): number {
    return this.expected?.kind === 'postpone' ? this.expected.delayMs : 0;
  }

  /** BullMQ's job together with the request that came along with it. */
  claimed(job: Job<JobFacts>): ClaimedJob {
    const id = String(job.id);
    const payload = this.payloads.get(id);
    this.payloads.delete(id);
    const body = payload?.fields.get('body');
    const work = payload?.fields.get('work');
    return {
      id,
      facts: job.data,
      run: job.attemptsStarted,
      attemptsMade: job.attemptsMade,
      waitedMs: payload === undefined ? 0 : Math.max(0, payload.nowMs - job.timestamp),
      sealedHead: payload?.fields.get('head') ?? Buffer.alloc(0),
      body: body !== undefined && body.length > 0 ? body : null,
      ...(work === undefined ? {} : { taken: parseWork(work) }),
      ranBeforeMs:
        work === undefined ? 0 : Math.max(0, (payload?.nowMs ?? 0) - (job.processedOn ?? Infinity)),
    };
  }

  /**
   * Returns jobs from `active` to their place; of those whose answer had begun, their clients get an error. Those whose
   * work goes on at the model server stay for the next fetch of `worker`.
   */
  async handBack(which: { keep?: string; only?: string; worker?: string }): Promise<Reclaimed> {
    const { keys, scripts, owner, retention } = this.around;
    const own = JSON.stringify({
      pool: keys.pool,
      queue: keys.queue,
      fence: owner.fence,
      message: 'the gateway was interrupted after the answer had begun',
      lockMs: LOCK_MS,
      retainMs: retention.failedMs,
      ...which,
    });
    const reply = await scripts.run('hand-back', keys.pool, own);
    if (!Array.isArray(reply)) {
      this.around.onFenced();
      return { back: [], failed: [], taken: [] };
    }
    const [back, failed, taken] = reply as [string[], string[], string[]];
    return { back, failed, taken };
  }

  /** The overrides for one backend instance. */
  overrides(backend: RedisQueueBackend): object {
    const base = backend as unknown as ArgumentBuilder & {
      queue: { opts: { lockDuration: number; name?: string } };
    };
    const pack = (token: string): Buffer =>
      packer.pack({ token, lockDuration: base.queue.opts.lockDuration });
    const activateKeys = bullKeys(backend, [
      'wait',
      'active',
      'prioritized',
      'events',
      'stalled',
      'limiter',
      'delayed',
      'paused',
      'meta',
      'pc',
      'marker',
    ]);
    const prefix = this.around.keys.queue;
    const fetchNext = async (token: string): Promise<SettlementReply | undefined> => {
      for (let attempt = 1; ; attempt += 1) {
        const isForced = attempt > FORCED_AFTER;
        const nomination: Nomination = this.around.picker.nominate(isForced);
        const own = this.own(nomination);
        const reply = await this.send('claim', [...activateKeys, prefix, pack(token), own]);
        if (!isRefused(reply)) {
          if (isForced) this.around.onForced?.();
          return reply;
        }
        await this.around.picker.recover(isDrift(reply));
      }
    };
    return {
      moveToActive: async (token: string) => this.handOut(await fetchNext(token)),
      moveToFinished: async (jobId: string, args: BackendArguments) => {
        const isFetching = Number(args[14 + 5]) === 1;
        const { tail, onStored, next: nextShot, ...facts } = this.expectedEnd(jobId);
        const endedMs = this.around.clock.estimate();
        const [offer, head, body] = offerOf(nextShot);
        const arriving = arrivingShot(nextShot, endedMs, this.around.rules);
        const nomination = this.around.picker.nominateAfter(endedMs, facts.gpuMs, arriving);
        const filmKeepMs = this.around.retention.completedMs;
        const reply = await this.send('settle', [
          ...clean(args, 23),
          prefix,
          pack(facts.token),
          this.own({
            ...nomination,
            ...facts,
            ...offer,
            filmKeepMs,
            endedMs,
            fetchNext: isFetching,
          }),
          head,
          body,
          ...tail.flat(),
        ]);
        const next = isFetching ? await this.orFetch(reply, facts.token, fetchNext) : reply;
        return this.handOut(next, onStored);
      },
      moveToDelayed: async (
        jobId: string,
        timestamp: number,
        delay: number,
        token = '0',
        opts: { fetchNext?: boolean } = {},
      ) => {
        const bull = base.moveToDelayedArgs(jobId, timestamp, token, delay, {
          ...opts,
          fetchNext: false,
        });
        const isFetching = opts.fetchNext === true;
        const expected = this.expected?.kind === 'postpone' ? this.expected : undefined;
        const facts = { id: jobId, token, gpuMs: expected?.gpuMs ?? 0, fetchNext: isFetching };
        const cleaned = clean(bull, 20);
        const reply = await this.send('postpone', [
          ...cleaned.slice(0, 11),
          ...activateKeys,
          ...cleaned.slice(11),
          prefix,
          pack(token),
          this.own({ ...this.around.picker.nominate(), ...facts }),
        ]);
        const next = isFetching ? await this.orFetch(reply, token, fetchNext) : reply;
        return this.handOut(next, expected?.onStored);
      },
    };
  }

  /** The reply, unless the pick in it was made too early: then another fetch. */
  private async orFetch(
    reply: SettlementReply | undefined,
    token: string,
    fetchNext: (token: string) => Promise<SettlementReply | undefined>,
  ): Promise<SettlementReply | undefined> {
    if (!isRefused(reply)) return reply;
    await this.around.picker.recover(isDrift(reply));
    return fetchNext(token);
  }

  /** A job that BullMQ ends without our processor having run (it never should) fails as our fault. */
  private expectedEnd(jobId: string): Settlement {
    const expected = this.expected;
    if (expected?.kind === 'settle' && expected.id === jobId) return expected;
    return {
      kind: 'settle',
      id: jobId,
      token: expected?.token ?? '',
      outcome: 'failed',
      code: 'internal_error',
      message: 'the gateway failed while running the job',
      swapMs: 0,
      forget: false,
      keepPayload: true,
      retainMs: this.around.retention.failedMs,
      gpuMs: 0,
      tail: [],
      next: undefined,
      onStored: () => undefined,
    };
  }

  private own(extra: object): string {
    const { keys, owner, clock } = this.around;
    return JSON.stringify({
      pool: keys.pool,
      queue: keys.queue,
      fence: owner.fence,
      expectedNow: clock.estimate(),
      ...extra,
    });
  }

  private async send(
    script: 'claim' | 'settle' | 'postpone',
    args: ScriptArgument[],
  ): Promise<SettlementReply | undefined> {
    const sentAt = performance.now();
    const reply = (await this.around.scripts.runBinary(script, ...args)) as
      SettlementReply | Buffer;
    if (Buffer.isBuffer(reply)) {
      if (reply.toString() === 'fenced') this.around.onFenced();
      return undefined;
    }
    this.around.clock.observe(timeIn(reply), sentAt);
    this.around.picker.heard(entriesIn(reply), reply[1] !== null);
    return reply;
  }

  private handOut(reply: SettlementReply | undefined, onStored?: () => void): unknown[] {
    const bull = reply === undefined ? [] : bullReplyIn(reply);
    if (typeof bull === 'number' && bull < 0) {
      throw new Error(`BullMQ refused the transition (${bull})`);
    }
    if (reply !== undefined && onStored !== undefined) this.around.handOver.after(onStored);
    if (typeof bull === 'number') return [];
    const next = raw2NextJobData(bull as Parameters<typeof raw2NextJobData>[0]) as unknown[];
    const id = next[1];
    const fields = reply && requestIn(reply);
    if (typeof id === 'string' && reply && fields) {
      this.payloads.clear();
      this.payloads.set(id, { fields, nowMs: timeIn(reply) });
    } else {
      this.onIdle();
    }
    return next;
  }
}

function bullKeys(backend: RedisQueueBackend, names: string[]): string[] {
  return names.map((name) => backend.toKey(name));
}

const clean = (args: BackendArguments, count: number): ScriptArgument[] =>
  Array.from({ length: count }, (_, index) => args[index] ?? '');
