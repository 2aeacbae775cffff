import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { peakBytes } from '../support/peak-memory.ts';

const MEGABYTE = 1_000_000;
const SIZE = 500 * MEGABYTE;
/** How much any process may grow while the result passes: buffers and garbage, not the result. */
const FLAT = 64 * MEGABYTE;

let demo: ScriptedModelServer;
let berth: BerthSystem;

beforeAll(async () => {
  demo = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: demo.url });
});
afterAll(async () => {
  await berth.stop();
  await demo.close();
});

/** Highest resident memory of each process of the gateway so far, in bytes. */
function peaks(): Record<string, number> {
  const pids = Object.entries(berth.processes).map(
    ([name, { child }]) => [name, child.pid] as const,
  );
  return Object.fromEntries(
    [...pids, ['redis', berth.redis.pid] as const].map(([name, pid]) => [name, peakBytes(pid)]),
  );
}

const bodyOf = (size: number): string => JSON.stringify({ size });
const order = (size: number): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', prefer: 'respond-async' },
  body: bodyOf(size),
});
const pathOf = (size: number): string => `/upstream/demo-video/bytes?size=${size}&chunk=1000000`;

async function digest(response: Response): Promise<[bytes: number, sha256: string]> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    const chunk = piece as Uint8Array;
    hash.update(chunk);
    bytes += chunk.length;
  }
  return [bytes, hash.digest('hex')];
}

async function resultOf(size: number): Promise<string> {
  const made = await fetch(berth.url + pathOf(size), order(size));
  expect(made.status).toBe(202);
  const { id } = (await made.json()) as JobObject;
  for (;;) {
    const job = (await (await fetch(`${berth.url}/berth/jobs/${id}?wait=30`)).json()) as JobObject;
    if (job.state === 'waiting' || job.state === 'running') continue;
    expect(job).toMatchObject({ state: 'completed' });
    return `${berth.url}/berth/jobs/${id}/result`;
  }
}

test('a result of 500 MB travels with flat memory in every process: kept, fetched, in parts, and live', async () => {
  const direct = await digest(await fetch(demo.url + pathOf(SIZE), { method: 'POST', body: '{}' }));
  expect(direct[0]).toBe(SIZE);
  await digest(await fetch(await resultOf(5 * MEGABYTE)));
  const before = peaks();
  const result = await resultOf(SIZE);
  expect(await digest(await fetch(result))).toEqual(direct);
  const tail = await fetch(result, { headers: { range: `bytes=${SIZE - 1000}-` } });
  expect([tail.status, (await digest(tail))[0]]).toEqual([206, 1000]);
  const live = await fetch(berth.url + pathOf(SIZE), { method: 'POST', body: bodyOf(SIZE) });
  expect(await digest(live)).toEqual(direct);
  const grown = Object.entries(peaks()).map(([name, bytes]) => [name, bytes - (before[name] ?? 0)]);
  process.stdout.write(`grown by, in bytes: ${JSON.stringify(Object.fromEntries(grown))}\n`);
  expect(grown.map(([name]) => name)).toEqual(['gpu', 'scorer', 'ingress', 'redis']);
  expect(grown.filter(([, bytes]) => Number(bytes) >= FLAT)).toEqual([]);
}, 300_000);
