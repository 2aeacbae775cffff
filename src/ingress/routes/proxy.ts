import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { RejectCode } from '../../errors.ts';
import { asyncUpstreamFor } from '../../gateway/async-upstream.ts';
import type { AsyncUpstream } from '../../gateway/async-upstream.ts';
import { ResponseRelay } from '../../gateway/relay-response.ts';
import type { RelayDependencies } from '../../gateway/relay-response.ts';
import { newRecord } from '../../gateway/job-object.ts';
import { submitJob } from '../../gateway/submit-job.ts';
import type { AdmittedJob, SubmitDependencies } from '../../gateway/submit-job.ts';
import type { BasePriority } from '../../policy/priority.ts';
import { NO_MODEL } from '../../ports/job-queue.ts';
import type { JobRecord, JobRecords } from '../../ports/job-records.ts';
import type { ModelCatalogue, ModelStates } from '../../ports/model-server.ts';
import { answerAsync } from '../async-answer.ts';
import { queryModel, takeIn } from '../body-intake.ts';
import type { IntakeBody, IntakeRules } from '../body-intake.ts';
import { drain } from '../drain.ts';
import { asGatewayError, sendError } from '../error-response.ts';
import { identityOf } from '../identity.ts';
import { jobSink } from '../job-sink.ts';
import type { WaitingRules } from '../job-sink.ts';
import { termsOf, USUAL_TERMS } from '../request-terms.ts';
import { recordEnd } from '../request-record.ts';
import type { RequestProgress } from '../request-record.ts';
import { COMFY_MODEL, matchRoute, upstreamCandidates } from '../route-table.ts';
import { jobTerms, submissionOf, submissionOfControl } from '../submission.ts';
import type { GpuRoute, HeaderRules } from '../submission.ts';
import { submitAnswerSink } from '../submit-answer-sink.ts';
import type { Bypass } from './bypass.ts';
import type { PassThrough } from './pass-through.ts';

/** What proxying needs. */
export interface ProxyDependencies extends SubmitDependencies, RelayDependencies {
  upstreamHeaders: HeaderRules;
  records: JobRecords;
  catalogue: ModelCatalogue & ModelStates;
  intake: IntakeRules;
  passThrough: PassThrough;
  bypass: Bypass;
  waiting: WaitingRules;
  asyncUpstreams: readonly AsyncUpstream[];
  /** Why no new job may be taken right now, if so. */
  refusal: () => RejectCode | undefined;
}

/** How long a request that stops models waits for the running job, in ms. */
const CONTROL_WAIT_MS = 600_000;

/** A job whose client is connected, for an orderly stop. */
export interface LiveRequest {
  /** Whether the worker has begun with it. */
  hasStarted: () => boolean;
  /** Answers the client with an error and gives the job up. */
  giveUp: (code: 'shutting_down') => void;
}

/**
 * Every request that is not Berth's own:
 *
 * 1. A route that needs no GPU passes straight through; so does a mere look at a model that is loaded.
 * 2. The body is taken in. A model that cannot be found, or that the model server does not know, is the model server's
 *    to refuse: straight through. One that needs no GPU takes its turn among its like.
 * 3. Admission: no new jobs while memory, disk or the gateway itself says so.
 * 4. The job is queued, durably. What would stop models under a running job is one too: it goes next, and alone. One
 *    with an Idempotency-Key that came before is the first one's job.
 * 5. A client that comes back for the answer has 202, or, when it waits and the job ends in time, the answer.
 * 6. To any other its answer is relayed; a client that leaves takes its job along, unless it has its whole answer.
 */
export class Proxy {
  /** Requests that wait or stream. */
  readonly live = new Set<LiveRequest>();
  private readonly dependencies: ProxyDependencies;

  constructor(dependencies: ProxyDependencies) {
    this.dependencies = dependencies;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? '/';
    const path = target.split('?', 1)[0] ?? '/';
    const match = matchRoute(request.method ?? 'GET', path);
    const progress: RequestProgress = {};
    recordEnd(request, response, progress, this.dependencies.telemetry);
    // 1
    if (!match.needsGpu || (await this.passesNow(match, path))) {
      await this.dependencies.passThrough.stream(request, response);
      return;
    }
    const id = randomUUID();
    try {
      await this.serve(id, match, path, request, response, progress);
    } catch (error) {
      await this.refuse(error, id, request, response, progress);
    }
  }

  private async serve(
    id: string,
    match: GpuRoute,
    path: string,
    request: IncomingMessage,
    response: ServerResponse,
    progress: RequestProgress,
  ): Promise<void> {
    const { catalogue, intake, passThrough, bypass, refusal, upstreamHeaders } = this.dependencies;
    const identity = identityOf(request);
    // 2
    const body = await takeIn(request, id, intake);
    const isControl = match.modelSource === 'none';
    const model = isControl ? NO_MODEL : await this.modelOf(match, path, request, body);
    const isRefused =
      model === undefined || (!isControl && (await catalogue.lookUp(model)) === 'unknown');
    if (isRefused || bypass.covers(model)) {
      const pass = () => passThrough.send(request, response, this.passedBody(id, body));
      await (isRefused ? pass() : bypass.inTurn(response, pass));
      await intake.store.removeJobs(body.inline === null ? [id] : []);
      return;
    }
    // 3
    const code = refusal();
    if (code !== undefined)
      throw new GatewayError(code, REFUSALS[code] ?? 'no new jobs are taken right now');
    // 4
    const terms = isControl
      ? USUAL_TERMS
      : termsOf(request, { member: identity.member, bodySha256: body.sha256 });
    let relay = new ResponseRelay(id, this.dependencies);
    const gone = new AbortController();
    response.on('close', () => {
      if (!response.writableFinished)
        gone.abort(new GatewayError('client_closed', 'the client has gone'));
    });
    let admitted: AdmittedJob;
    const submittedAt = performance.now();
    try {
      const submission = isControl ? submissionOfControl : submissionOf;
      const made = submission(request, { id, match, model, body, identity }, upstreamHeaders);
      admitted = await submitJob({ ...made, ...jobTerms(terms) }, this.dependencies);
    } catch (error) {
      relay.close();
      throw error;
    }
    // 5
    const { jobId, isNew } = admitted.stored;
    progress.jobId = jobId;
    if (!isNew || terms.isAsync) relay.close();
    if (!isNew) await intake.store.removeJobs(body.inline === null ? [id] : []);
    const record = await this.recordOf(admitted);
    const ranked = record.facts;
    if (terms.isAsync) {
      await this.answerLater(request, response, record, terms.waitSeconds, gone.signal);
      return;
    }
    if (!isNew) relay = new ResponseRelay(jobId, this.dependencies);
    // 6
    const startedAt = (): number | undefined => relay.startedAt;
    const facts = { id: jobId, model, ranked, body, submittedAt, startedAt };
    const sink = jobSink(request, response, facts, this.dependencies.waiting);
    Object.assign(progress, { sink, hasStarted: () => startedAt() !== undefined });
    const live: LiveRequest = {
      hasStarted: () => relay.startedAt !== undefined,
      giveUp: (why) => {
        sink.fail(why, REFUSALS[why] ?? why);
        gone.abort(new GatewayError('client_closed', 'the gateway stops'));
      },
    };
    this.live.add(live);
    const tooLong = (): void => {
      if (relay.startedAt !== undefined) return;
      sink.fail('model_unavailable', 'another job still runs; nothing was stopped');
      gone.abort(new GatewayError('client_closed', 'the wait was too long'));
    };
    const patience = isControl ? setTimeout(tooLong, CONTROL_WAIT_MS) : undefined;
    const answered = new AbortController();
    const { method = '', url = '/' } = request;
    const isSubmit = asyncUpstreamFor(method, url, this.dependencies.asyncUpstreams) !== undefined;
    try {
      if (response.destroyed) gone.abort(new GatewayError('client_closed', 'the client has gone'));
      if (isSubmit) {
        const either = AbortSignal.any([gone.signal, answered.signal]);
        await relay.relay(
          submitAnswerSink(sink, () => answered.abort()),
          either,
          !isNew,
        );
      } else await relay.relay(sink, gone.signal, !isNew);
    } catch (error) {
      if (answered.signal.aborted) return;
      if (!gone.signal.aborted) throw error;
      if (terms.idempotency === undefined)
        await this.clientLeft(id, model, match, ranked, request, performance.now() - submittedAt);
      else await this.dependencies.queue.detach(jobId, id).catch(() => undefined);
    } finally {
      clearTimeout(patience);
      this.live.delete(live);
    }
  }

  /** What is on record of the job; of a new one that is what was just stored. */
  private async recordOf({ stored, facts }: AdmittedJob): Promise<JobRecord> {
    if (stored.isNew) return newRecord(facts, stored);
    const record = await this.dependencies.records.read(stored.jobId);
    if (record === undefined)
      throw new GatewayError(
        'result_gone',
        'the job with this Idempotency-Key is not kept any more',
      );
    return record;
  }

  private async answerLater(
    request: IncomingMessage,
    response: ServerResponse,
    record: JobRecord,
    waitSeconds: number,
    gone: AbortSignal,
  ): Promise<void> {
    const { positions } = this.dependencies.waiting;
    const stopping = new AbortController();
    const live: LiveRequest = { hasStarted: () => false, giveUp: () => stopping.abort() };
    this.live.add(live);
    try {
      const signal = AbortSignal.any([gone, stopping.signal]);
      const reading = { ...this.dependencies, positions };
      await answerAsync(request, response, record, waitSeconds, reading, signal);
    } finally {
      this.live.delete(live);
    }
  }

  private async modelOf(
    match: GpuRoute,
    path: string,
    request: IncomingMessage,
    body: IntakeBody,
  ): Promise<string | undefined> {
    if (match.modelSource === 'query') return queryModel(request);
    if (match.modelSource === 'body') return body.model;
    return this.modelInPath(match, path);
  }

  /** Whether the request can be answered at once without a load. */
  private async passesNow(match: GpuRoute, path: string): Promise<boolean> {
    if (match.passesWhenReady !== true) return false;
    const model = await this.modelInPath(match, path);
    return model !== undefined && (await this.dependencies.catalogue.stateOf(model)) === 'ready';
  }

  private async modelInPath(match: GpuRoute, path: string): Promise<string | undefined> {
    if (match.modelSource === 'comfyui') return COMFY_MODEL;
    const candidates = upstreamCandidates(path);
    for (const candidate of candidates) {
      if ((await this.dependencies.catalogue.lookUp(candidate)) === 'known') return candidate;
    }
    return candidates.at(-1);
  }

  private passedBody(id: string, body: IntakeBody) {
    return (
      body.inline ?? {
        stream: this.dependencies.intake.store.read(`${id}.request`),
        bytes: body.bytes,
      }
    );
  }

  private async clientLeft(
    id: string,
    model: string,
    match: GpuRoute,
    ranked: Pick<BasePriority, 'band'>,
    request: IncomingMessage,
    waitedMs: number,
  ): Promise<void> {
    const { queue, telemetry, intake } = this.dependencies;
    // A queue that does not answer is told again when it does; see BullJobQueue.
    const fate = await queue.abandon(id, 'client_closed').catch(() => undefined);
    if (fate !== 'evicted') return;
    await intake.store.removeJobs([id]).catch(() => undefined);
    telemetry.jobSettled({
      jobId: id,
      memberId: identityOf(request).member,
      band: ranked.band,
      model,
      kind: match.kind,
      outcome: 'evicted',
      code: 'client_closed',
      waitedMs: Math.round(waitedMs),
    });
  }

  private async refuse(
    error: unknown,
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
    { jobId }: RequestProgress,
  ): Promise<void> {
    const { telemetry, intake } = this.dependencies;
    if (jobId === undefined) await intake.store.removeJobs([id]).catch(() => undefined);
    if (response.destroyed && !response.headersSent) return;
    const known = asGatewayError(error);
    if (known.code === 'internal_error')
      telemetry.log.error({ err: error, jobId: id }, 'request.failed');
    telemetry.jobRejected({
      code: known.code as Parameters<typeof telemetry.jobRejected>[0]['code'],
    });
    sendError(response, known);
    drain(request);
  }
}

const REFUSALS: Partial<Record<RejectCode, string>> = {
  memory_full: 'the queue has little memory left; try again later',
  storage_full: 'the disk has little room left; try again later',
  redis_unavailable: 'the queue is not reachable right now',
  shutting_down: 'the gateway is shutting down',
};
