import { Agent } from 'undici';
import type { BenchModelServer } from './model-server.ts';
import { Nginx } from './nginx.ts';
import { quantile } from './statistics.ts';
import { timeChunks } from './streaming.ts';

/** A list that needs no GPU. */
const LIST = '/v1/models';
/** A body of that many bytes; a GET below a model that is loaded passes the queue by. */
const passedBytes = (bytes: number): string => `/upstream/bench/bytes?size=${bytes}`;
/** Requests one after the other before the next way has its turn. */
const BLOCK = 25;

const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

/** How much is measured. */
export interface BesideNginxSize {
  readonly requests: number;
  readonly chunks: number;
  readonly largeBytes: number;
}

/**
 * What needs no GPU, through Berth and through nginx to the same model server: time of a small request and its answer,
 * one after the other on kept connections; throughput of a large answer; for nginx also what it adds to a streamed chunk.
 * Times in ms, throughput in MB/s. Without nginx on this machine: nothing.
 */
export async function measureBesideNginx(
  server: BenchModelServer,
  berthUrl: string,
  size: BesideNginxSize,
): Promise<Record<string, number>> {
  const nginx = await Nginx.start(server.url);
  if (nginx === undefined) return {};
  try {
    const ways = { direct: server.url, nginx: nginx.url, berth: berthUrl };
    const names = Object.keys(ways) as (keyof typeof ways)[];
    for (const name of names) for (let left = 100; left > 0; left -= 1) await timeList(ways[name]);
    const times: Record<keyof typeof ways, number[]> = { direct: [], nginx: [], berth: [] };
    for (let block = 0; block * BLOCK < size.requests; block += 1) {
      // Each way goes first as often as the others.
      for (let turn = 0; turn < names.length; turn += 1) {
        const name = names[(block + turn) % names.length] ?? 'direct';
        for (let left = BLOCK; left > 0; left -= 1) times[name].push(await timeList(ways[name]));
      }
    }
    const figures: Record<string, number> = {};
    for (const name of names) {
      figures[`passed.${name}.p50`] = quantile(times[name], 0.5);
      figures[`passed.${name}.p99`] = quantile(times[name], 0.99);
    }
    for (const name of ['nginx', 'berth'])
      figures[`passed.${name}.added`] =
        (figures[`passed.${name}.p50`] ?? NaN) - (figures['passed.direct.p50'] ?? NaN);
    const { berth: delays } = await timeChunks(server, nginx.url, size.chunks);
    figures['chunk.nginx.p50'] = quantile(delays, 0.5);
    for (const name of ['nginx', 'berth'] as const) {
      await timePassedBytes(ways[name], size.largeBytes / 10);
      figures[`passed-large.${name}`] = await timePassedBytes(ways[name], size.largeBytes);
    }
    return figures;
  } finally {
    await nginx.stop();
  }
}

async function timeList(origin: string): Promise<number> {
  const sentAt = performance.now();
  const { statusCode, body } = await agent.request({ origin, path: LIST, method: 'GET' });
  const text = await body.text();
  if (statusCode !== 200 || !text.includes('bench')) throw new Error(`status ${statusCode}`);
  return performance.now() - sentAt;
}

async function timePassedBytes(origin: string, bytes: number): Promise<number> {
  const sentAt = performance.now();
  const path = passedBytes(bytes);
  const { statusCode, headers, body } = await agent.request({ origin, path, method: 'GET' });
  let received = 0;
  for await (const piece of body as AsyncIterable<Buffer>) received += piece.length;
  if (statusCode !== 200 || received !== bytes || headers['x-berth-job-id'] !== undefined)
    throw new Error(`status ${statusCode}, ${received} of ${bytes} bytes came`);
  return bytes / 1e6 / ((performance.now() - sentAt) / 1000);
}
