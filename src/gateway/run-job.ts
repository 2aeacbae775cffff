import { afterFailedAttempt } from '../policy/attempt.ts';
import type { AttemptRules } from '../policy/attempt.ts';
import type { FailureCode } from '../errors.ts';
import type { BodyStore } from '../ports/body-store.ts';
import { RunAborted } from '../ports/job-queue.ts';
import type { ClaimedJob, RunJob, RunResult, TakenWork } from '../ports/job-queue.ts';
import { ModelServerFault } from '../ports/model-server.ts';
import type { ModelServer, ModelServerAnswer, ModelServerRequest } from '../ports/model-server.ts';
import { FencedError } from '../ports/response-log.ts';
import type { ResponseLogWriter } from '../ports/response-log.ts';
import { asyncUpstreamFor } from './async-upstream.ts';
import type { AsyncUpstream } from './async-upstream.ts';
import { AnswerCheck } from './answer-check.ts';
import { endToEnd, headerOf } from './headers.ts';
import { loadFirst, submitAndPoll, takeUp } from './submit-and-poll.ts';
import { SUSPECT_STATUSES, transientAnswer } from './transient-answer.ts';

/** A request as it is sealed beside its job. */
export interface RequestHead {
  method: string;
  target: string;
  /** Flat end-to-end headers as they go upstream, credentials included. */
  headers: string[];
}

/** What running a job needs. */
export interface RunJobDependencies {
  modelServer: ModelServer;
  store: BodyStore;
  openSeal: (jobId: string, sealed: Buffer) => Buffer;
  rules: AttemptRules;
  /** Routes that answer before their work is done; default none. */
  asyncUpstreams?: readonly AsyncUpstream[];
  /** Keeps what such a route has taken on for a job until that ends; default: no later run takes it up. */
  keepWork?: (jobId: string, work: TakenWork) => Promise<void>;
  /** A number in [0, 1), drawn anew. */
  chance: () => number;
}

/** Longest body of a suspect status that is read before it is passed on, in bytes. */
const SUSPECT_BYTES = 64 * 1024;

/**
 * Runs one job on the model server:
 *
 * 1. The request is put together again; a body that is gone fails the job.
 * 2. It goes upstream. No answer: repeated, or failed.
 * 3. An answer about the model server's own passing state: repeated, or, at the last attempt, passed on and failed.
 * 4. Any other answer is the client's: head and body go to the log as they come. Where the work only begins with it,
 *    the run lasts until that work is done. A job whose earlier run submitted it goes on from there, without a step 2.
 * 5. One that broke off, that says an error in a stream, or that is no answer at all fails the job.
 * 6. An abort ends the run at whatever stage, in the way its reason says.
 */
export function createRunJob(dependencies: RunJobDependencies): RunJob {
  return async (job, log, signal) => {
    try {
      return await run(job, log, signal, dependencies);
    } catch (error) {
      if (signal.aborted) return aborted(job, signal.reason);
      throw error;
    }
  };
}

async function run(
  job: ClaimedJob,
  log: ResponseLogWriter,
  signal: AbortSignal,
  dependencies: RunJobDependencies,
): Promise<RunResult> {
  // 1
  const request = await rebuild(job, dependencies);
  if (request === undefined)
    return { kind: 'failed', code: 'storage_lost', message: 'the request body is gone' };
  const giveUpOrRetry = (
    code: FailureCode,
    message: string,
    askedMs?: number,
  ): RunResult | undefined => {
    const failed = {
      attempt: job.attemptsMade + 1,
      delivered: log.bytes > 0,
      ...(askedMs === undefined ? {} : { askedMs }),
    };
    const verdict = afterFailedAttempt(failed, dependencies.rules, dependencies.chance());
    return verdict === 'give-up'
      ? undefined
      : { kind: 'retry', code, message, delayMs: verdict.retryAfterMs };
  };
  // 2
  const { asyncUpstreams = [], modelServer } = dependencies;
  const upstream = asyncUpstreamFor(request.method, request.target, asyncUpstreams);
  const { keepWork = async () => Promise.resolve() } = dependencies;
  const submission = upstream && {
    ...{ upstream, request, log, modelServer },
    keep: async (work: TakenWork) => keepWork(job.id, work),
  };
  if (job.taken !== undefined)
    return submission === undefined
      ? {
          kind: 'failed',
          code: 'internal_error',
          message: 'the entry of asyncUpstreams by which the work was submitted is gone',
        }
      : takeUp(submission, job.taken, signal);
  if (upstream !== undefined) await loadFirst(upstream, request, modelServer, signal);
  let answer: ModelServerAnswer;
  try {
    answer = await dependencies.modelServer.call(request, signal);
  } catch (error) {
    if (!(error instanceof ModelServerFault) || signal.aborted) throw error;
    const code = error.kind === 'invalid' ? 'model_server_invalid' : 'model_server_unreachable';
    return giveUpOrRetry(code, error.message) ?? { kind: 'failed', code, message: error.message };
  }
  // 3
  const body = answer.body[Symbol.asyncIterator]();
  const isSuspect = SUSPECT_STATUSES.has(answer.status);
  const { pieces: first, isWhole } = isSuspect
    ? await readSuspect(body)
    : { pieces: [], isWhole: false };
  const transient = isSuspect
    ? transientAnswer(answer.status, answer.headers, Buffer.concat(first).toString())
    : undefined;
  if (transient !== undefined) {
    const message = 'the model server was not ready';
    const retry = giveUpOrRetry(transient.code, message, transient.askedMs);
    if (retry !== undefined) return retry;
    if (first.length === 0) return { kind: 'failed', code: transient.code, message };
  }
  // 4
  const { status } = answer;
  if (submission !== undefined && status >= 200 && status < 300)
    return submitAndPoll(submission, answer, signal);
  const { method, target } = request;
  const { kind } = job.facts;
  const check = new AnswerCheck({ method, target, kind, status, headers: answer.headers });
  const refused = check.atHead();
  if (refused !== undefined) {
    await letGo(body, signal);
    return { kind: 'failed', ...refused };
  }
  log.head({ status, headers: [...endToEnd(answer.headers), ...lengthOf(first, isWhole, answer)] });
  try {
    for (const piece of first) await log.write(piece);
    for (let next = await body.next(); next.done !== true; next = await body.next()) {
      check.push(next.value);
      await log.write(next.value);
    }
  } catch (error) {
    if (signal.aborted || error instanceof FencedError || !(error instanceof ModelServerFault))
      throw error;
    if (check.isDone) return { kind: 'completed' };
    const retry = giveUpOrRetry('model_server_truncated', error.message);
    return retry ?? { kind: 'failed', code: 'model_server_truncated', message: error.message };
  }
  // 5
  const fault = check.atEnd();
  if (fault !== undefined) return { kind: 'failed', ...fault };
  return transient === undefined
    ? { kind: 'completed' }
    : { kind: 'failed', code: transient.code, message: 'the model server was not ready' };
}

/** Ends the reading of a body nobody wants; a generator lets go of its connection only once it was asked for a piece. */
async function letGo(body: AsyncIterator<Buffer>, signal: AbortSignal): Promise<void> {
  try {
    await readSuspect(body);
    await body.return?.();
  } catch (error) {
    if (signal.aborted) throw error;
  }
}

/** The length of a body that was read whole, so that everybody after us can tell that it is. */
function lengthOf(
  pieces: readonly Buffer[],
  isWhole: boolean,
  answer: ModelServerAnswer,
): string[] {
  if (!isWhole || headerOf(answer.headers, 'content-length') !== undefined) return [];
  return ['Content-Length', String(pieces.reduce((sum, piece) => sum + piece.length, 0))];
}

async function rebuild(
  job: ClaimedJob,
  { store, openSeal }: RunJobDependencies,
): Promise<ModelServerRequest | undefined> {
  const head = JSON.parse(openSeal(job.id, job.sealedHead).toString()) as RequestHead;
  const { bodyBytes } = job.facts;
  const marks = ['X-Berth-Job-Id', job.id, 'X-Berth-Attempt', String(job.attemptsMade + 1)];
  const request = {
    method: head.method,
    target: head.target,
    headers: [...head.headers, ...marks],
  };
  if (job.body !== null)
    return job.body.length === bodyBytes ? { ...request, body: job.body } : undefined;
  if (bodyBytes === 0) return { ...request, body: hasNoBody(head.method) ? null : Buffer.alloc(0) };
  const name = `${job.id}.request`;
  if ((await store.size(name)) !== bodyBytes) return undefined;
  return { ...request, body: { stream: store.read(name), bytes: bodyBytes } };
}

const hasNoBody = (method: string): boolean => method === 'GET' || method === 'HEAD';

async function readSuspect(
  body: AsyncIterator<Buffer>,
): Promise<{ pieces: Buffer[]; isWhole: boolean }> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  while (bytes < SUSPECT_BYTES) {
    const next = await body.next();
    if (next.done === true) return { pieces, isWhole: true };
    pieces.push(next.value);
    bytes += next.value.length;
  }
  return { pieces, isWhole: false };
}

function aborted(job: ClaimedJob, reason: unknown): RunResult {
  const why = reason instanceof RunAborted ? reason.why : 'client_closed';
  switch (why) {
    case 'client_closed':
      return { kind: 'cancelled', code: 'client_closed', forget: job.facts.mode === 'sync' };
    case 'cancelled':
      return { kind: 'cancelled', code: 'cancelled', forget: false };
    case 'shutting_down':
      return { kind: 'handed-back' };
    case 'fenced':
      throw new FencedError('another worker owns the GPU');
  }
}
