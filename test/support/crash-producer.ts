import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobObject } from '../../src/gateway/job-object.ts';
import type { Random } from '../../src/simulate/random.ts';
import type { CrashHistory } from './crash-history.ts';
import type { RecordedRequest } from './recorded-generations.ts';

/** Chance that a client hangs up before the reply to its submission, and when at the latest, in ms. */
const HANGS_UP = 0.15;
const HANGS_UP_WITHIN_MS = 20;
/** Chance that a submission is repeated although its reply came. */
const REPEATS = 0.2;
/** Chance of a body that is too large for Redis, and its length in bytes. */
const LARGE = 0.05;
const LARGE_BYTES = 300_000;
/** A reply that does not come within this time, in ms, counts as cut. */
const REPLY_MS = 10_000;

/** A client of a gateway that keeps dying. */
export interface CrashClient {
  readonly url: () => string;
  readonly history: CrashHistory;
  readonly random: Random;
  /** Ends everything at once: the test has failed. */
  readonly signal: AbortSignal;
}

/** Submits one job after the other and follows each to its end, until `isOver`; its last job too. */
export async function produce(
  client: CrashClient,
  name: string,
  isOver: () => boolean,
): Promise<void> {
  for (let count = 1; !isOver(); count += 1) {
    const jobId = await submit(client, `${name}-${count}`);
    const state = await follow(client, jobId);
    if (state === 'completed') await readResult(client, jobId);
  }
}

/** Repeats the submission with the same key until it is accepted. */
async function submit(client: CrashClient, key: string): Promise<string> {
  const { random } = client;
  const request: RecordedRequest = {
    model: 'm',
    stream: random.next() < 0.5,
    key,
    pad: 'x'.repeat(random.next() < LARGE ? LARGE_BYTES : 10),
  };
  for (;;) {
    const jobId = await submitOnce(client, key, JSON.stringify(request));
    if (jobId !== undefined && random.next() >= REPEATS) return jobId;
    await sleep(random.whole(1, jobId === undefined ? 150 : 20), undefined, {
      signal: client.signal,
    });
  }
}

async function submitOnce(
  { url, history, random, signal }: CrashClient,
  key: string,
  body: string,
): Promise<string | undefined> {
  const isHangingUp = random.next() < HANGS_UP;
  const leave = AbortSignal.timeout(isHangingUp ? random.whole(0, HANGS_UP_WITHIN_MS) : REPLY_MS);
  history.record({ kind: 'submit', key });
  try {
    const response = await fetch(`${url()}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        prefer: 'respond-async',
        'idempotency-key': key,
      },
      body,
      signal: AbortSignal.any([leave, signal]),
    });
    const text = await response.text();
    if (response.status === 202) {
      const { id } = JSON.parse(text) as JobObject;
      history.record({ kind: 'accepted', key, jobId: id });
      return id;
    }
    history.record({ kind: 'refused', key, status: response.status });
  } catch {
    history.record({ kind: 'cut', key });
  }
  signal.throwIfAborted();
  return undefined;
}

/** Reads the job until it has ended, or is not there. */
async function follow(client: CrashClient, jobId: string): Promise<string> {
  for (;;) {
    const state = await readJob(client, jobId, '?wait=2');
    if (state !== undefined && state !== 'waiting' && state !== 'running') return state;
    if (state === undefined) await sleep(100, undefined, { signal: client.signal });
  }
}

/** Reads the job once; undefined when no answer came, or one that says nothing of the job. */
export async function readJob(
  client: CrashClient,
  jobId: string,
  query = '',
): Promise<string | undefined> {
  const answer = await get(client, `/berth/jobs/${jobId}${query}`);
  if (answer === undefined || (answer.status !== 200 && answer.status !== 404)) return undefined;
  const isAbsent = answer.status === 404;
  const job = isAbsent ? undefined : (JSON.parse(answer.body.toString()) as JobObject);
  const state = job?.state ?? 'absent';
  client.history.record({ kind: 'read', jobId, state, code: job?.error?.code ?? null });
  return state;
}

/** Reads the job's whole answer; again while none comes, or the gateway cannot give one. */
export async function readResult(client: CrashClient, jobId: string): Promise<void> {
  for (;;) {
    const answer = await get(client, `/berth/jobs/${jobId}/result`);
    if (answer !== undefined && answer.status !== 503) {
      const { status, body } = answer;
      const sha256 = createHash('sha256').update(body).digest('hex');
      client.history.record({ kind: 'result', jobId, status, sha256 });
      return;
    }
    await sleep(100, undefined, { signal: client.signal });
  }
}

async function get(
  { url, signal }: CrashClient,
  path: string,
): Promise<{ status: number; body: Buffer } | undefined> {
  try {
    const either = AbortSignal.any([AbortSignal.timeout(REPLY_MS), signal]);
    const response = await fetch(`${url()}${path}`, { signal: either });
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}
