import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/simulate/random.ts';
import type { CrashHistory } from './crash-history.ts';
import { answerOf } from './raw-upstream.ts';
import type { RawUpstream, UpstreamRequest } from './raw-upstream.ts';
import { chunkedHead, chunkOf, LAST_CHUNK } from './scripted-streams.ts';

/** How long a generation takes, in ms. */
const SHORTEST_MS = 5;
const LONGEST_MS = 60;
/** Chance of an answer that is too large for Redis, and its length in bytes. */
const LARGE = 0.05;
const LARGE_BYTES = 400_000;
const PIECES = 6;

/** What a crash test's client sends as its body. */
export interface RecordedRequest {
  model: string;
  stream: boolean;
  /** The Idempotency-Key it is sent with. */
  key: string;
  pad: string;
}

/**
 * Has a model server answer each generation with bytes that no other generation has, of the same job neither, and
 * records when each began and when it ended: just before its last bytes left, or when its connection died.
 */
export function recordGenerations(
  upstream: RawUpstream,
  history: CrashHistory,
  random: Random,
): void {
  let count = 0;
  upstream.script = async (socket, request) => {
    // The end of a connection that died before this request came is to be seen first.
    await turn();
    await turn();
    count += 1;
    const generation = count;
    const { key, stream } = JSON.parse(request.body.toString()) as RecordedRequest;
    const jobId = jobIdOf(request);
    history.record({ kind: 'generation-start', generation, jobId, key });
    let isOver = false;
    const over = (sha256: string | null): void => {
      if (!isOver) history.record({ kind: 'generation-end', generation, sha256 });
      isOver = true;
    };
    const cut = (): void => over(null);
    if (socket.destroyed || socket.readableEnded) cut();
    socket.once('end', cut).once('close', cut);
    const text = `generation ${generation} ${random.next()}`;
    const ms = random.whole(SHORTEST_MS, LONGEST_MS);
    const isGoing = (): boolean => !isOver;
    if (stream) await sendStream(socket, text, ms, isGoing, over);
    else await sendWhole(socket, random.next() < LARGE ? LARGE_BYTES : 0, text, ms, isGoing, over);
    socket.off('end', cut).off('close', cut);
  };
}

function jobIdOf({ headers }: UpstreamRequest): string {
  return headers.find((line) => /^x-berth-job-id:/i.test(line))?.replace(/^[^:]*: */, '') ?? '';
}

const hashOf = (body: string): string => createHash('sha256').update(body).digest('hex');

async function sendStream(
  socket: Socket,
  text: string,
  ms: number,
  isGoing: () => boolean,
  over: (sha256: string) => void,
): Promise<void> {
  const event = (delta: object, finish: string | null): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  const pieces = Array.from({ length: PIECES }, (_, at) =>
    event({ content: `${text} ${at}` }, null),
  );
  const last = `${event({}, 'stop')}data: [DONE]\n\n`;
  socket.write(chunkedHead());
  for (const piece of pieces) {
    await sleep(ms / PIECES);
    if (!isGoing()) return;
    socket.write(chunkOf(piece));
  }
  over(hashOf(pieces.join('') + last));
  socket.write(chunkOf(last) + LAST_CHUNK);
}

async function sendWhole(
  socket: Socket,
  padBytes: number,
  text: string,
  ms: number,
  isGoing: () => boolean,
  over: (sha256: string) => void,
): Promise<void> {
  const body = JSON.stringify({ text, pad: text.repeat(Math.ceil(padBytes / text.length)) });
  await sleep(ms);
  if (!isGoing()) return;
  over(hashOf(body));
  socket.write(answerOf(200, 'application/json', body), 'latin1');
}
