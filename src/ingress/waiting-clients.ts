import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';
import { asyncUpstreamFor } from '../gateway/async-upstream.ts';
import type { AsyncUpstream } from '../gateway/async-upstream.ts';
import type { ResponseRelay } from '../gateway/relay-response.ts';
import type { BodyStore } from '../ports/body-store.ts';
import type { JobQueue } from '../ports/job-queue.ts';
import type { JobRecord } from '../ports/job-records.ts';
import type { JobKind, Telemetry } from '../ports/telemetry.ts';
import { answerAsync } from './async-answer.ts';
import type { JobReading } from './job-reading.ts';
import { jobSink } from './job-sink.ts';
import type { WaitingRules } from './job-sink.ts';
import type { RequestProgress } from './request-record.ts';
import { submitAnswerSink } from './submit-answer-sink.ts';

/** What waiting needs. */
export interface WaitingClientsDependencies extends Omit<JobReading, 'positions'> {
  queue: Pick<JobQueue, 'abandon' | 'detach'>;
  store: BodyStore;
  telemetry: Pick<Telemetry, 'jobSettled'>;
  waiting: WaitingRules;
  asyncUpstreams: readonly AsyncUpstream[];
}

/** A job whose client is connected, for an orderly stop. */
export interface LiveRequest {
  /** Whether the worker has begun with it. */
  hasStarted: () => boolean;
  /** Answers the client with an error and gives the job up. */
  giveUp: (code: 'shutting_down', message: string) => void;
}

/** A client that stays for its job's answer. */
export interface WaitingClient {
  request: IncomingMessage;
  response: ServerResponse;
  progress: RequestProgress;
  record: JobRecord;
  kind: JobKind;
  /** The request's own id; the job's too, unless it is a repeat. */
  requestId: string;
  isRepeat: boolean;
  /** The job outlives this connection by the grace of its Idempotency-Key. */
  isKeyed: boolean;
  isStream: boolean;
  relay: ResponseRelay;
  /** Aborted when the client has gone. */
  gone: AbortController;
  /** By performance.now(). */
  submittedAt: number;
  /** Longest wait for the start of the job, in ms; default: as long as it takes. */
  patienceMs?: number;
}

/** The clients whose jobs wait or run, each with its own connection. */
export class WaitingClients {
  /** For an orderly stop. */
  readonly live = new Set<LiveRequest>();
  private readonly dependencies: WaitingClientsDependencies;

  constructor(dependencies: WaitingClientsDependencies) {
    this.dependencies = dependencies;
  }

  /**
   * Relays the job's answer to its client. One that leaves takes its job along, unless it has its whole answer, or the
   * job has an Idempotency-Key and waits for its return.
   */
  async relay(client: WaitingClient): Promise<void> {
    const { request, response, progress, record, relay, gone, isRepeat, submittedAt } = client;
    const startedAt = (): number | undefined => relay.startedAt;
    const { id, facts: ranked } = record;
    const sink = jobSink(
      request,
      response,
      { id, model: ranked.model, ranked, body: client, submittedAt, startedAt },
      this.dependencies.waiting,
    );
    const hasStarted = (): boolean => relay.startedAt !== undefined;
    Object.assign(progress, { sink, hasStarted });
    const live: LiveRequest = {
      hasStarted,
      giveUp: (why, message) => {
        sink.fail(why, message);
        gone.abort(new GatewayError('client_closed', 'the gateway stops'));
      },
    };
    const tooLong = (): void => {
      if (hasStarted()) return;
      sink.fail('model_unavailable', 'another job still runs; nothing was stopped');
      gone.abort(new GatewayError('client_closed', 'the wait was too long'));
    };
    const patience =
      client.patienceMs === undefined ? undefined : setTimeout(tooLong, client.patienceMs);
    const answered = new AbortController();
    this.live.add(live);
    try {
      if (response.destroyed) gone.abort(new GatewayError('client_closed', 'the client has gone'));
      if (this.isSubmit(request)) {
        const whole = submitAnswerSink(sink, () => answered.abort());
        await relay.relay(whole, AbortSignal.any([gone.signal, answered.signal]), isRepeat);
      } else await relay.relay(sink, gone.signal, isRepeat);
    } catch (error) {
      if (answered.signal.aborted) return;
      if (!gone.signal.aborted) throw error;
      await this.left(client);
    } finally {
      clearTimeout(patience);
      this.live.delete(live);
    }
  }

  /** 202 for a client that comes back, or the answer if the job ends within `waitSeconds`. */
  async answerLater(
    { request, response, record, gone }: Omit<WaitingClient, 'relay'>,
    waitSeconds: number,
  ): Promise<void> {
    const { positions } = this.dependencies.waiting;
    const stopping = new AbortController();
    const live: LiveRequest = { hasStarted: () => false, giveUp: () => stopping.abort() };
    this.live.add(live);
    try {
      const signal = AbortSignal.any([gone.signal, stopping.signal]);
      const reading = { ...this.dependencies, positions };
      await answerAsync(request, response, record, waitSeconds, reading, signal);
    } finally {
      this.live.delete(live);
    }
  }

  private isSubmit({ method = '', url = '/' }: IncomingMessage): boolean {
    return asyncUpstreamFor(method, url, this.dependencies.asyncUpstreams) !== undefined;
  }

  private async left(client: WaitingClient): Promise<void> {
    const { queue, telemetry, store } = this.dependencies;
    const { record, kind, requestId, isKeyed, submittedAt } = client;
    if (isKeyed) {
      await queue.detach(record.id, requestId).catch(() => undefined);
      return;
    }
    const waitedMs = Math.round(performance.now() - submittedAt);
    // A queue that does not answer is told again when it does; see BullJobQueue.
    const fate = await queue.abandon(record.id, 'client_closed').catch(() => undefined);
    if (fate !== 'evicted') return;
    await store.removeJobs([record.id]).catch(() => undefined);
    const { member: memberId, band, model } = record.facts;
    const job = { jobId: record.id, memberId, band, model, kind };
    telemetry.jobSettled({ ...job, outcome: 'evicted', code: 'client_closed', waitedMs });
  }
}
