import { Agent } from 'undici';
import type { Figures } from './pass.ts';
import { quantile } from './statistics.ts';

const agent = new Agent();

/** How long `GET /berth/queue` takes to its last byte, one request after the other, in ms; and how large it is, in KB. */
export async function timeQueueView(berthUrl: string, count: number): Promise<Figures> {
  const samples: number[] = [];
  let bytes = 0;
  for (let index = 0; index < count; index += 1) {
    const sentAt = performance.now();
    const { statusCode, body } = await agent.request({
      origin: berthUrl,
      path: '/berth/queue',
      method: 'GET',
    });
    bytes = (await body.arrayBuffer()).byteLength;
    samples.push(performance.now() - sentAt);
    if (statusCode !== 200) throw new Error(`/berth/queue answered ${statusCode}`);
  }
  return {
    'view.p50': quantile(samples, 0.5),
    'view.p99': quantile(samples, 0.99),
    'view.kb': bytes / 1000,
  };
}
