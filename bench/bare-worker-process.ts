/** The yardstick: a bare BullMQ worker that makes the same upstream call, and nothing else. */
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { Agent } from 'undici';
import type { BareJob } from './bare-queue.ts';

const [, , socket = '', queueName = ''] = process.argv;
const agent = new Agent({
  headersTimeout: 0,
  bodyTimeout: 0,
  keepAliveTimeout: 4_000,
  pipelining: 1,
});

const worker = new Worker<BareJob>(
  queueName,
  async ({ data }) => {
    const { origin, path, headers, body } = data;
    const answer = await agent.request({ origin, path, method: 'POST', headers, body });
    return { status: answer.statusCode, text: await answer.body.text() };
  },
  { connection: new Redis({ path: socket, maxRetriesPerRequest: null }), concurrency: 1 },
);
worker.on('error', (error) => process.stderr.write(`${error.message}\n`));
await worker.waitUntilReady();
process.send?.({ type: 'ready' });
