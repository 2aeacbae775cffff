import type { Answer, BerthClient } from './berth-client.ts';
import { CommandError } from './command-error.ts';
import { isBerthsOwn, readRefusal } from './read-refusal.ts';
import type { ResultTarget } from './result-target.ts';
import type { Terminal } from './terminal.ts';

/** What the model server answered. */
export interface ResultHead {
  readonly status: number;
  readonly contentType: string;
}

/** Cuts in a row without one more byte until the answer is given up. */
const MOST_CUTS = 5;
/** Before an answer that was cut is asked for again, in ms. */
const AGAIN_MS = 1000;

/**
 * Brings a job's answer, byte by byte as the model server sent it, to a target; what the target holds is not asked for
 * again but for its last byte, which shows that there is such a range. Throws Refusal when Berth has no answer, CommandError when it
 * cannot be had whole.
 */
export async function fetchResult(
  client: BerthClient,
  terminal: Terminal,
  jobId: string,
  target: ResultTarget,
): Promise<ResultHead> {
  const path = `/berth/jobs/${encodeURIComponent(jobId)}/result`;
  let [most, cuts] = [0, 0];
  for (;;) {
    const have = await target.size();
    const from = Math.max(0, have - 1);
    const headers: Record<string, string> = have > 0 ? { range: `bytes=${from}-` } : {};
    const answer = await client.open(path, { headers });
    if (answer.statusCode === 416) {
      await answer.body.dump();
      await target.restart();
      continue;
    }
    const isPart = answer.statusCode === 206 && startsAt(answer, from);
    const berths = isPart ? undefined : await berthsOwn(answer);
    if (berths !== undefined && isBerthsOwn(berths)) throw readRefusal(answer.statusCode, berths);
    if (!isPart) await target.restart();
    const isWhole = await take(answer, berths, target, isPart ? from : 0);
    if (isWhole) {
      const { 'content-type': type = '' } = answer.headers;
      const status = isPart ? 200 : answer.statusCode;
      return { status, contentType: typeof type === 'string' ? type : (type[0] ?? '') };
    }
    terminal.check();
    const has = await target.size();
    cuts = has > most ? 1 : cuts + 1;
    most = Math.max(most, has);
    if (answer.headers['accept-ranges'] !== 'bytes') {
      // A broken answer has no ranges, and another run of its job would answer something else.
      await target.restart();
      throw new CommandError(`the answer breaks off after ${has} bytes, as the model server's did`);
    }
    if (cuts >= MOST_CUTS)
      throw new CommandError(
        `the answer broke off after ${has} bytes; the same command goes on from there`,
      );
    await terminal.sleep(AGAIN_MS);
  }
}

/** All of an answer that may be an error of Berth's own; undefined: it is none. */
async function berthsOwn({ statusCode, headers, body }: Answer): Promise<Buffer | undefined> {
  const isError = statusCode >= 400 && headers['content-type'] === 'application/json';
  return isError ? Buffer.from(await body.arrayBuffer()) : undefined;
}

/** Whether the answer came to its end. */
async function take(
  { body }: Answer,
  read: Buffer | undefined,
  target: ResultTarget,
  from: number,
): Promise<boolean> {
  if (read !== undefined) {
    await target.write(read, 0);
    return true;
  }
  let at = from;
  const pieces = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  for (;;) {
    const next = await pieces.next().catch(() => undefined);
    if (next === undefined) return false;
    if (next.done === true) return true;
    await target.write(next.value, at);
    at += next.value.length;
  }
}

const startsAt = ({ headers }: Answer, from: number): boolean =>
  String(headers['content-range'] ?? '').startsWith(`bytes ${from}-`);
