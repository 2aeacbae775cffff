import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { RejectCode } from '../../errors.ts';
import { ResponseRelay } from '../../gateway/relay-response.ts';
import type { RelayDependencies } from '../../gateway/relay-response.ts';
import { newRecord } from '../../gateway/job-object.ts';
import { submitJob } from '../../gateway/submit-job.ts';
import type { AdmittedJob, SubmitDependencies } from '../../gateway/submit-job.ts';
import type { JobRecord } from '../../ports/job-records.ts';
import type { ModelCatalogue, ModelStates } from '../../ports/model-server.ts';
import { takeIn } from '../body-intake.ts';
import type { IntakeBody, IntakeRules } from '../body-intake.ts';
import { drain } from '../drain.ts';
import { asGatewayError, sendError } from '../error-response.ts';
import { identityOf } from '../identity.ts';
import { ModelFinder } from '../model-finder.ts';
import { termsOf, USUAL_TERMS } from '../request-terms.ts';
import { recordEnd } from '../request-record.ts';
import type { RequestProgress } from '../request-record.ts';
import { matchRoute } from '../route-table.ts';
import { jobTerms, submissionOf, submissionOfControl } from '../submission.ts';
import type { GpuRoute, HeaderRules } from '../submission.ts';
import { WaitingClients } from '../waiting-clients.ts';
import type { WaitingClientsDependencies } from '../waiting-clients.ts';
import type { Bypass } from './bypass.ts';
import type { PassThrough } from './pass-through.ts';

/** What proxying needs. */
export interface ProxyDependencies
  extends SubmitDependencies, RelayDependencies, WaitingClientsDependencies {
  queue: SubmitDependencies['queue'];
  telemetry: SubmitDependencies['telemetry'];
  upstreamHeaders: HeaderRules;
  catalogue: ModelCatalogue & ModelStates;
  intake: IntakeRules;
  passThrough: PassThrough;
  bypass: Bypass;
  /** Why no new job may be taken right now, if so. */
  refusal: () => RejectCode | undefined;
}

/** How long a request that stops models waits for the running job, in ms. */
const CONTROL_WAIT_MS = 600_000;

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
  private readonly dependencies: ProxyDependencies;
  private readonly models: ModelFinder;
  private readonly clients: WaitingClients;

  constructor(dependencies: ProxyDependencies) {
    this.dependencies = dependencies;
    this.models = new ModelFinder(dependencies.catalogue);
    this.clients = new WaitingClients(dependencies);
  }

  /** Ends the waits of all clients, or of those whose jobs have not begun: with an error, and their jobs given up. */
  stopWaiting(which: 'all' | 'waiting'): void {
    for (const live of [...this.clients.live]) {
      if (which === 'waiting' && live.hasStarted()) continue;
      live.giveUp('shutting_down', REFUSALS.shutting_down ?? '');
    }
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const target = request.url ?? '/';
    const path = target.split('?', 1)[0] ?? '/';
    const match = matchRoute(request.method ?? 'GET', path);
    const progress: RequestProgress = {};
    recordEnd(request, response, progress, this.dependencies.telemetry);
    // 1
    if (!match.needsGpu || (await this.models.isReady(match, path))) {
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
    const { intake, passThrough, bypass, refusal, upstreamHeaders } = this.dependencies;
    const identity = identityOf(request);
    // 2
    const body = await takeIn(request, id, intake, match.modelSource === 'body');
    const model = await this.models.known(match, path, request, body);
    const isRefused = model === undefined;
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
    const isControl = match.modelSource === 'none';
    const terms = isControl
      ? USUAL_TERMS
      : termsOf(request, { member: identity.member, bodySha256: body.sha256 });
    const listening = new ResponseRelay(id, this.dependencies);
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
      listening.close();
      throw error;
    }
    const { jobId, isNew } = admitted.stored;
    progress.jobId = jobId;
    if (!isNew || terms.isAsync) listening.close();
    if (!isNew) await intake.store.removeJobs(body.inline === null ? [id] : []);
    const client = {
      ...{ request, response, progress, gone, submittedAt, requestId: id },
      record: await this.recordOf(admitted),
      kind: match.kind,
      isStream: body.isStream,
      isRepeat: !isNew,
      isKeyed: terms.idempotency !== undefined,
      ...(isControl ? { patienceMs: CONTROL_WAIT_MS } : {}),
    };
    // 5
    if (terms.isAsync) await this.clients.answerLater(client, terms.waitSeconds);
    // 6
    else {
      const relay = isNew ? listening : new ResponseRelay(jobId, this.dependencies);
      await this.clients.relay({ ...client, relay });
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

  private passedBody(id: string, body: IntakeBody) {
    return (
      body.inline ?? {
        stream: this.dependencies.intake.store.read(`${id}.request`),
        bytes: body.bytes,
      }
    );
  }

  private async refuse(
    error: unknown,
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
    { jobId }: RequestProgress,
  ): Promise<void> {
    const { telemetry, intake } = this.dependencies;
    // The job may be stored and found again under its key: then its body is needed. Else the scorer finds it an orphan.
    const isUncertain = error instanceof GatewayError && error.isUncertain;
    if (jobId === undefined && !isUncertain)
      await intake.store.removeJobs([id]).catch(() => undefined);
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
