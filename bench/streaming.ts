import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { JOB_BODY, jobHeaders } from './measured-queue.ts';
import { CHAT } from './model-server.ts';
import type { BenchModelServer } from './model-server.ts';

const PAUSE_MS = 20;
const CHUNK_EVERY_MS = 8;
const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

const post = async (origin: string, path: string, mark: string) =>
  agent.request({ origin, path, method: 'POST', headers: jobHeaders(mark), body: JOB_BODY });

/** Figures of one way to the model server, in ms. */
export interface StreamFigures {
  berth: number[];
  direct: number[];
}

/** Time from request to first body byte, in pairs, each on an idle queue. */
export async function timeFirstBytes(
  server: BenchModelServer,
  berthUrl: string,
  pairs: number,
): Promise<StreamFigures> {
  server.answer('first-byte', async (request, response) => {
    request.resume();
    response.setHeader('content-type', 'text/event-stream');
    response.write('data: {"first":true}\n\n');
    await sleep(5);
    response.end('data: [DONE]\n\n');
  });
  const once = async (origin: string): Promise<number> => {
    await sleep(PAUSE_MS);
    const sentAt = performance.now();
    const { body } = await post(origin, CHAT, 'first-byte');
    let firstAt: number | undefined;
    for await (const piece of body as AsyncIterable<Buffer>)
      if (piece.length > 0) firstAt ??= performance.now();
    if (firstAt === undefined) throw new Error('no body came');
    return firstAt - sentAt;
  };
  const figures: StreamFigures = { berth: [], direct: [] };
  for (let pair = 0; pair < pairs; pair += 1) {
    for (const way of pair % 2 === 0
      ? (['berth', 'direct'] as const)
      : (['direct', 'berth'] as const))
      figures[way].push(await once(way === 'berth' ? berthUrl : server.url));
  }
  return figures;
}

/** Time of each streamed chunk from the server's write to the client's hands. */
export async function timeChunks(
  server: BenchModelServer,
  berthUrl: string,
  chunks: number,
): Promise<StreamFigures> {
  const writtenAt: number[] = [];
  server.answer('chunks', async (request, response) => {
    request.resume();
    response.setHeader('content-type', 'text/event-stream');
    for (let index = 0; index < chunks; index += 1) {
      await sleep(CHUNK_EVERY_MS);
      writtenAt[index] = performance.now();
      response.write(`data: {"index":${index},"text":"${'z'.repeat(120)}"}\n\n`);
    }
    response.end('data: [DONE]\n\n');
  });
  const once = async (origin: string): Promise<number[]> => {
    const { body } = await post(origin, CHAT, 'chunks');
    const delays: number[] = [];
    let text = '';
    for await (const piece of body as AsyncIterable<Buffer>) {
      const receivedAt = performance.now();
      text += piece.toString();
      const events = text.split('\n\n');
      text = events.pop() ?? '';
      for (const event of events) {
        if (event === 'data: [DONE]') continue;
        const index = Number(/"index":(\d+)/.exec(event)?.[1]);
        delays.push(receivedAt - (writtenAt[index] ?? NaN));
      }
    }
    if (delays.length !== chunks) throw new Error(`${delays.length} of ${chunks} chunks came`);
    return delays;
  };
  return { direct: await once(server.url), berth: await once(berthUrl) };
}

/** Reads a large answer; returns MB/s (1 MB is 10^6 bytes). Throws when bytes are missing. */
export async function timeLargeAnswer(origin: string, bytes: number): Promise<number> {
  const sentAt = performance.now();
  const { statusCode, body } = await post(origin, `/upstream/bench/bytes?size=${bytes}`, 'bytes');
  let received = 0;
  for await (const piece of body as AsyncIterable<Buffer>) received += piece.length;
  if (statusCode !== 200 || received !== bytes)
    throw new Error(`status ${statusCode}, ${received} of ${bytes} bytes came`);
  return bytes / 1e6 / ((performance.now() - sentAt) / 1000);
}

/** One chat through Berth, read to its end; the model server answers by `mark`. */
export async function chat(origin: string, mark: string): Promise<void> {
  const { statusCode, body } = await post(origin, CHAT, mark);
  await body.dump();
  if (statusCode !== 200) throw new Error(`status ${statusCode}`);
}
