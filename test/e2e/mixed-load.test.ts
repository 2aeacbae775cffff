import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';

const COUNT = 1000;
const CLIENTS = 3;

interface Order {
  index: number;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}
interface Answer {
  index: number;
  status: number;
  sha256: string;
}

let demo: ScriptedModelServer;
let system: BerthSystem;

beforeAll(async () => {
  demo = await startDemoModelServer();
  // Who waits for more than 20 s would get signs of life, and these answers are compared byte by byte.
  const config = new URL('../support/no-signs.config.json', import.meta.url);
  system = await BerthSystem.start({
    modelServerUrl: demo.url,
    env: { BERTH_CONFIG: fileURLToPath(config) },
  });
});
afterAll(async () => {
  await system.stop();
  await demo.close();
});

function order(index: number): Order {
  const json = {
    'content-type': 'application/json',
    'x-llamaswap-priority': String(((index * 37) % 220) - 110),
  };
  const post = (path: string, body: object): Order => ({
    index,
    method: 'POST',
    path,
    headers: json,
    body: JSON.stringify(body),
  });
  const messages = [{ role: 'user', content: `question ${index}` }];
  switch (index % 5) {
    case 0:
      return post('/v1/chat/completions', {
        model: 'demo-chat-small',
        stream: true,
        max_tokens: 6,
        messages,
      });
    case 1:
      return post('/v1/chat/completions', { model: 'demo-chat-large', max_tokens: 6, messages });
    case 2:
      return post('/v1/images/generations', {
        model: 'demo-image',
        prompt: `picture ${index}`,
        size: '64x64',
      });
    case 3:
      return post('/v1/embeddings', { model: 'demo-embed', input: `text ${index}` });
    default:
      return post(`/upstream/demo-video/bytes?size=${(index % 7) * 60_000}&chunk=16384`, {
        of: index,
      });
  }
}

async function viaClients(baseUrl: string, orders: Order[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const child = fork(
        fileURLToPath(new URL('../support/load-client-process.ts', import.meta.url)),
        {
          execArgv: ['--import', 'tsx'],
          env: { PATH: process.env.PATH ?? '' },
        },
      );
      child.on('message', (answer: Answer & { error?: string }) => {
        if (answer.error !== undefined) throw new Error(answer.error);
        answers.push(answer);
      });
      child.send({
        baseUrl,
        inFlight: 20,
        orders: orders.filter((one) => one.index % CLIENTS === client),
      });
      await new Promise((resolve) => child.once('exit', resolve));
    }),
  );
  return answers.toSorted((a, b) => a.index - b.index);
}

test(`${COUNT} mixed requests from ${CLIENTS} client processes: no overlap, every answer byte-equal`, async () => {
  const orders = Array.from({ length: COUNT }, (_, index) => order(index));
  const direct: Answer[] = [];
  // Those for one model together: each model is loaded once.
  const byModel = orders.toSorted((a, b) => (a.index % 5) - (b.index % 5));
  for (const { index, path, method, headers, body } of byModel) {
    const response = await fetch(demo.url + path, { method, headers, body });
    const bytes = Buffer.from(await response.arrayBuffer());
    direct.push({
      index,
      status: response.status,
      sha256: createHash('sha256').update(bytes).digest('hex'),
    });
  }
  expect(demo.overlaps).toBe(0);
  const through = await viaClients(system.url, orders);
  expect(through).toEqual(direct.toSorted((a, b) => a.index - b.index));
  expect(demo.overlaps).toBe(0);
  expect(new Set(direct.map(({ status }) => status))).toEqual(new Set([200]));
}, 180_000);
