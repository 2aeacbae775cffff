import type { ModelServer, ModelServerRequest } from '../ports/model-server.ts';
import { ModelServerFault } from '../ports/model-server.ts';
import { relativeTo, standing, withId } from './async-upstream.ts';
import type { AsyncUpstream } from './async-upstream.ts';

/** Work that goes on at the model server after its submission was answered. */
export interface AsyncWork {
  readonly upstream: AsyncUpstream;
  /** As it was submitted; questions about it carry its headers. */
  readonly request: ModelServerRequest;
  /** The model server's id of it. */
  readonly id: string;
  readonly modelServer: ModelServer;
}

const MOST_POLL_BYTES = 64 * 1024 * 1024;
/** One question, in ms. */
const POLL_MS = 10_000;
const CANCEL_MS = 1_000;

/** How the work stands. `lost`: the model server does not know it (any more); `silent`: it does not answer. */
export async function lookAt(
  { upstream, request, id, modelServer }: AsyncWork,
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
export async function stopWork({ upstream, request, id, modelServer }: AsyncWork): Promise<void> {
  for (const { path, body } of upstream.cancel ?? []) {
    const asked = { method: 'POST', path: withId(path, id), body: withId(body, id) };
    await ask(modelServer, request, asked, AbortSignal.timeout(CANCEL_MS));
  }
}

/** One question; undefined when no whole answer came. Throws only the signal's reason. */
export async function ask(
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

/** A whole body; throws ModelServerFault when it breaks off or is longer than `most` bytes. */
export async function readAll(body: AsyncIterable<Buffer>, most: number): Promise<Buffer> {
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
