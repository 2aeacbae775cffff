import { setTimeout as sleep } from 'node:timers/promises';
import { RunAborted } from '../ports/job-queue.ts';
import type { RunResult, TakenWork } from '../ports/job-queue.ts';
import { ModelServerFault } from '../ports/model-server.ts';
import type { ModelServer, ModelServerAnswer, ModelServerRequest } from '../ports/model-server.ts';
import type { ResponseLogWriter } from '../ports/response-log.ts';
import { idIn } from './async-upstream.ts';
import type { AsyncUpstream } from './async-upstream.ts';
import { ask, lookAt, readAll, stopWork } from './async-work.ts';
import type { AsyncWork } from './async-work.ts';
import { endToEnd } from './headers.ts';

/** A submission, and where what becomes of it goes. */
export interface Submission {
  upstream: AsyncUpstream;
  /** As it is submitted; polls carry its headers. */
  request: ModelServerRequest;
  log: ResponseLogWriter;
  modelServer: ModelServer;
  /** Keeps what the model server took on, so that a later run can take it up; resolves when it is durable. */
  keep: (work: TakenWork) => Promise<void>;
}

const MOST_ANSWER_BYTES = 1024 * 1024;
/** Polls that fail for so long mean that the model server is gone, in ms. */
const SILENT_MS = 60_000;
/** Polls in a row that know nothing of the work before it counts as lost. */
const LOST_POLLS = 3;
/**
 * A client that leaves so soon after the submit answer has not had it, in ms: nobody knows the id, the work is stopped.
 * Later its connection has long ended, and what left is the ingress it used: the work goes on.
 */
const DELIVERY_MS = 2_500;

/** Asks for the path that loads the model, where an entry names one; what it answers makes no difference. */
export async function loadFirst(
  { load }: AsyncUpstream,
  request: ModelServerRequest,
  modelServer: ModelServer,
  signal: AbortSignal,
): Promise<void> {
  if (load === undefined) return;
  await ask(modelServer, request, { method: 'GET', path: load }, signal);
}

/**
 * Holds the GPU for work that goes on after its submission was answered. `answer` has a 2xx status and an unread body.
 *
 * 1. It must name an id; without one nobody can tell when the work ends. That is kept before anybody hears of it.
 * 2. The answer goes to the client whole and at once.
 * 3. Polls follow until one says done or failed, or the work is lost: the model server no longer knows it, is silent
 *    for 60 s, or takes longer than the entry allows; then it is stopped.
 * 4. Told to end, it stops the work and passes the abort on, but for a client that has had its answer (`DELIVERY_MS`)
 *    and for a worker that shuts down: the next one takes the work up.
 */
export async function submitAndPoll(
  submission: Submission,
  answer: ModelServerAnswer,
  signal: AbortSignal,
): Promise<RunResult> {
  const { upstream, log, keep } = submission;
  let body: Buffer;
  try {
    body = await readAll(answer.body, MOST_ANSWER_BYTES);
  } catch (error) {
    if (signal.aborted || !(error instanceof ModelServerFault)) throw error;
    // Whether the work has begun is not known: submitted again, it might be done twice.
    return failed('model_server_truncated', error.message);
  }
  const headers = endToEnd(answer.headers);
  const hasLength = headers.some((name, at) => at % 2 === 0 && /^content-length$/i.test(name));
  if (!hasLength) headers.push('Content-Length', String(body.length));
  const head = { status: answer.status, headers };
  // 1
  const id = idIn(body.toString(), upstream.idPointer);
  if (id !== undefined) await keep({ id, head, body });
  // 2
  log.head(head);
  await log.write(body);
  if (id === undefined)
    return failed('model_server_invalid', 'the submit answer names no id of the work');
  return hold({ ...submission, id }, performance.now() + DELIVERY_MS, signal);
}

/**
 * As `submitAndPoll` from step 3 on, for work that an earlier run submitted: its answer stands in this run's log too, and
 * whoever has read it goes on behind it.
 */
export async function takeUp(
  submission: Submission,
  { id, head, body }: TakenWork,
  signal: AbortSignal,
): Promise<RunResult> {
  submission.log.head({ ...head, repeats: true });
  await submission.log.write(body);
  return hold({ ...submission, id }, 0, signal);
}

/** Steps 3 and 4. `deliveredAt`: when the client has its answer for sure, by performance.now(). */
async function hold(work: AsyncWork, deliveredAt: number, signal: AbortSignal): Promise<RunResult> {
  const obeyed = new AbortController();
  const why = (): RunAborted['why'] | undefined =>
    signal.reason instanceof RunAborted ? signal.reason.why : undefined;
  const onAbort = (): void => {
    const isDelivered = performance.now() >= deliveredAt;
    if (why() !== 'client_closed' || !isDelivered) obeyed.abort(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  try {
    // 3
    return await poll(work, obeyed.signal);
  } catch (error) {
    // 4
    if (obeyed.signal.aborted && why() !== 'fenced' && why() !== 'shutting_down')
      await stopWork(work);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function poll(work: AsyncWork, signal: AbortSignal): Promise<RunResult> {
  const { upstream, id } = work;
  const endsAt = performance.now() + upstream.timeoutSeconds * 1000;
  let heardAt = performance.now();
  let lost = 0;
  while (performance.now() < endsAt) {
    await sleep(upstream.pollSeconds * 1000, undefined, { signal });
    const seen = await lookAt(work, signal);
    if (seen === 'done') return { kind: 'completed' };
    if (seen === 'failed')
      return failed('model_server_invalid', `the model server says that ${id} has failed`);
    if (seen !== 'silent') heardAt = performance.now();
    else if (performance.now() - heardAt > SILENT_MS)
      return failed('model_server_unreachable', `the model server no longer tells of ${id}`);
    lost = seen === 'lost' ? lost + 1 : 0;
    if (lost >= LOST_POLLS)
      return failed('model_server_truncated', `the model server no longer knows ${id}`);
  }
  await stopWork(work);
  return failed('model_server_timeout', `${id} took longer than ${upstream.timeoutSeconds} s`);
}

const failed = (code: string, message: string): RunResult => ({ kind: 'failed', code, message });
