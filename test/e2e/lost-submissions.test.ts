import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { connectRedis } from '../../src/adapters/redis/connection.ts';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import type { FurtherIngress } from '../support/berth-system.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import type { CuttingProxy } from '../support/cutting-proxy.ts';
import { eventually } from '../support/eventually.ts';
import { RawUpstream } from '../support/raw-upstream.ts';
import { NAME_HEADER, ScriptedStreams } from '../support/scripted-streams.ts';

let upstream: RawUpstream;
let streams: ScriptedStreams;
let berth: BerthSystem;
let proxy: CuttingProxy;
/** Its way to Redis loses replies while `isCutting`. */
let unlucky: FurtherIngress;
let redis: ReturnType<typeof connectRedis>;
let isCutting = false;

beforeAll(async () => {
  upstream = await RawUpstream.start();
  streams = new ScriptedStreams(upstream);
  berth = await BerthSystem.start({ modelServerUrl: upstream.url });
  redis = connectRedis(berth.redis.url, 'patient', () => undefined);
  proxy = await startCuttingProxy(berth.redis.socket, /"waitingCap":/, () => isCutting);
  unlucky = await berth.addIngress({ REDIS_URL: proxy.url });
});
afterAll(async () => {
  redis.disconnect();
  await berth.stop();
  await proxy.close();
  await upstream.close();
});

async function submit(
  url: string,
  name: string,
  pad: string,
  headers: Record<string, string> = { 'idempotency-key': name },
): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      prefer: 'respond-async',
      [NAME_HEADER]: name,
      ...headers,
    },
    body: JSON.stringify({ model: 'm', pad }),
  });
}
const waiting = async (): Promise<number> => redis.zcard('{berth}:gpu:gpu:prioritized');

test.each([
  ['small', 10],
  ['large, beside Redis', 400_000],
])(
  'a submission whose reply from Redis was lost is the job of its repeat, and runs once: a body that is %s',
  async (size, bytes) => {
    const gate = streams.hold(`before ${size}`);
    expect((await submit(berth.url, `before ${size}`, '')).status).toBe(202);
    await eventually(() => streams.socketOf(`before ${size}`) !== undefined, {
      what: 'a running job',
    });
    const name = `unheard ${size}`;
    const pad = 'x'.repeat(bytes);
    isCutting = true;
    const lost = [submit(unlucky.url, name, pad), submit(unlucky.url, 'no key', pad, {})];
    const [unheard] = await Promise.all(lost);
    expect(unheard?.status).toBe(503);
    const accepted = await submit(berth.url, name, pad);
    expect(accepted.status).toBe(202);
    const { id } = (await accepted.json()) as JobObject;
    isCutting = false;
    // The one without a key is given up: so everything that got no answer has been seen to.
    await eventually(async () => (await waiting()) < 2, { what: 'the doubts to be settled' });
    gate.release();
    const job = await eventually(
      async () => {
        const response = await fetch(`${berth.url}/berth/jobs/${id}?wait=5`);
        const seen = (await response.json()) as JobObject;
        return seen.state === 'waiting' || seen.state === 'running' ? null : seen;
      },
      { what: 'its end', timeoutMs: 15_000 },
    );
    expect(job).toMatchObject({ id, state: 'completed', error: null });
    const bodies = upstream.requests.filter(({ headers }) =>
      headers.includes(`${NAME_HEADER}: ${name}`),
    );
    expect(bodies.map(({ body }) => body.toString())).toEqual([
      JSON.stringify({ model: 'm', pad }),
    ]);
  },
);
