import { setTimeout as sleep } from 'node:timers/promises';
import { RunAborted } from '../ports/job-queue.ts';
import type { RunResult } from '../ports/job-queue.ts';
import { ModelServerFault } from '../ports/model-server.ts';
import type { ModelServer, ModelServerAnswer, ModelServerRequest } from '../ports/model-server.ts';
import type { ResponseLogWriter } from '../ports/response-log.ts';
import { idIn, relativeTo, standing, withId } from './async-upstream.ts';
import type { AsyncUpstream } from './async-upstream.ts';
import { endToEnd } from './headers.ts';

/** A submission that the model server took. */
export interface TakenSubmission {
  upstream: AsyncUpstream;
  /** As it was submitted; polls carry its headers. */
  request: ModelServerRequest;
  /** Of a 2xx status; its body has not been read. */
  answer: ModelServerAnswer;
}

const MOST_ANSWER_BYTES = 1024 * 1024;
const MOST_POLL_BYTES = 64 * 1024 * 1024;
/** One poll, in ms. */
const POLL_MS = 10_000;
/** Polls that fail for so long mean that the model server is gone, in ms. */
const SILENT_MS = 60_000;
/** Polls in a row that know nothing of the work before it counts as lost. */
const LOST_POLLS = 3;
/**
 * A client that leaves so soon after the submit answer has not had it, in ms: nobody knows the id, the work is stopped.
 * Later its connection has long ended, and what left is the ingress it used: the work goes on.
 */
const DELIVERY_MS = 2_500;
const CANCEL_MS = 1_000;

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
 * Holds the GPU for work that goes on after its submission was answered:
 *
 * 1. The answer goes to the client whole and at once.
 * 2. It must name an id; without one nobody can tell when the work ends.
 * 3. Polls follow until one says done or failed, or the work is lost: the model server no longer knows it, is silent
 *    for 60 s, or takes longer than the entry allows; then it is stopped.
 * 4. Told to end, it stops the work and passes the abort on; see `DELIVERY_MS` for the one exception.
 */
export async function submitAndPoll(
  { upstream, request, answer }: TakenSubmission,
  log: ResponseLogWriter,
  modelServer: ModelServer,
  signal: AbortSignal,
): Promise<RunResult> {
  // 1
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
  log.head({ status: answer.status, headers });
  await log.write(body);
  // 2
  const id = idIn(body.toString(), upstream.idPointer);
  if (id === undefined)
    return failed('model_server_invalid', 'the submit answer names no id of the work');
  // 3
  const work = { upstream, request, id, modelServer };
  const deliveredAt = performance.now() + DELIVERY_MS;
  const obeyed = new AbortController();
  const onAbort = (): void => {
    const isDelivered = performance.now() >= deliveredAt;
    const isClient = signal.reason instanceof RunAborted && signal.reason.why === 'client_closed';
    if (!isClient || !isDelivered) obeyed.abort(signal.reason);
  };
  signal.addEventListener('abort', onAbort);
  if (signal.aborted) onAbort();
  try {
    return await poll(work, obeyed.signal);
  } catch (error) {
    // 4
    if (obeyed.signal.aborted && !isFenced(signal.reason)) await cancel(work);
    throw error;
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

interface Work {
  upstream: AsyncUpstream;
  request: ModelServerRequest;
  id: string;
  modelServer: ModelServer;
}

async function poll(work: Work, signal: AbortSignal): Promise<RunResult> {
  const { upstream, id } = work;
  const endsAt = performance.now() + upstream.timeoutSeconds * 1000;
  let heardAt = performance.now();
  let lost = 0;
  while (performance.now() < endsAt) {
    await sleep(upstream.pollSeconds * 1000, undefined, { signal });
    const seen = await look(work, signal);
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
  await cancel(work);
  return failed('model_server_timeout', `${id} took longer than ${upstream.timeoutSeconds} s`);
}

async function look(
  { upstream, request, id, modelServer }: Work,
  signal: AbortSignal,
): Promise<'done' | 'failed' | 'going on' | 'lost' | 'silent'> {
  const get = async (path: string) =>
    ask(modelServer, request, { method: 'GET', path: withId(path, id) }, signal);
  const polled = await get(upstream.poll);
  if (polled === undefined || polled.status >= 500) return 'silent';
  // llama-swap says 409 for a model that was stopped under its work.
  if (polled.status >= 400) return 'lost';
  const said = standing(upstream, id, polled.text);
  if (said !== 'going on' || upstream.pending === undefined) return said;
  const pending = await get(upstream.pending);
  if (pending === undefined || pending.status >= 500) return 'silent';
  if (pending.text.includes(id)) return 'going on';
  // It may have ended between the two questions.
  const again = await get(upstream.poll);
  const then = again === undefined ? 'going on' : standing(upstream, id, again.text);
  return then === 'going on' ? 'lost' : then;
}

/** Stops the work; what that answers makes no difference. */
async function cancel({ upstream, request, id, modelServer }: Work): Promise<void> {
  for (const { path, body } of upstream.cancel ?? []) {
    const asked = { method: 'POST', path: withId(path, id), body: withId(body, id) };
    await ask(modelServer, request, asked, AbortSignal.timeout(CANCEL_MS));
  }
}

/** One question; undefined when no whole answer came. Throws only the signal's reason. */
async function ask(
  modelServer: ModelServer,
  { target, headers }: ModelServerRequest,
  { method, path, body }: { method: string; path: string; body?: string },
  signal: AbortSignal,
): Promise<{ status: number; text: string } | undefined> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(POLL_MS)]);
  const type = body === undefined ? [] : ['Content-Type', 'application/json'];
  const kept = headers.filter((_, at) => !OF_THE_BODY.test(headers[at - (at % 2)] ?? ''));
  try {
    const answer = await modelServer.call(
      {
        method,
        target: relativeTo(target, path),
        headers: [...kept, ...type],
        body: body === undefined ? null : Buffer.from(body),
      },
      bounded,
    );
    const text = (await readAll(answer.body, MOST_POLL_BYTES)).toString();
    return { status: answer.status, text };
  } catch (error) {
    if (signal.aborted && method === 'GET') throw signal.reason;
    if (error instanceof ModelServerFault) return undefined;
    throw error;
  }
}

const OF_THE_BODY = /^(?:content-(?!language)[\w-]+|accept-encoding|range|if-[\w-]+)$/i;

/** A whole body; throws ModelServerFault when it breaks off or is too long. */
async function readAll(body: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > most)
      throw new ModelServerFault('invalid', 'an answer about async work is too long');
  }
  return Buffer.concat(pieces);
}

const isFenced = (reason: unknown): boolean =>
  reason instanceof RunAborted && reason.why === 'fenced';

const failed = (code: string, message: string): RunResult => ({ kind: 'failed', code, message });
