import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { eventually } from '../support/eventually.ts';
import { answerOf, RawUpstream } from '../support/raw-upstream.ts';

let upstream: RawUpstream;
let berth: BerthSystem;
/** What the model server answers is so long that its model loads. */
let isLoading = true;
let generated = 0;

const LOADING = '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}';
const ANSWER = '{"choices":[]}';

beforeAll(async () => {
  upstream = await RawUpstream.start();
  berth = await BerthSystem.start({ modelServerUrl: upstream.url });
});
beforeEach(() => {
  upstream.reset();
  isLoading = true;
  generated = 0;
  upstream.script = (socket) => {
    if (!isLoading) generated += 1;
    socket.write(
      isLoading
        ? answerOf(503, 'application/json', LOADING)
        : answerOf(200, 'application/json', ANSWER),
    );
  };
});
afterAll(async () => {
  await berth.stop();
  await upstream.close();
});

async function ask(
  headers: Record<string, string> = {},
  signal = AbortSignal.timeout(20_000),
): Promise<Response> {
  return fetch(`${berth.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: '{"model":"m"}',
    signal,
  });
}

const refused = async (): Promise<unknown> =>
  eventually(() => upstream.requests.length > 0, { what: 'a 503 of the model server' });

/** Nothing waits or runs any more. */
async function idle(): Promise<void> {
  await eventually(
    async () => {
      const view = (await (await fetch(`${berth.url}/berth/queue`)).json()) as QueueView;
      return view.running === null && view.waiting.length === 0;
    },
    { what: 'the queue to be empty' },
  );
}

describe('case 50: while the model server loads a model', () => {
  test('who stays gets one answer, generated once, and sees no 503', async () => {
    const answer = ask();
    await refused();
    isLoading = false;
    const { status } = await answer;
    expect([status, await (await answer).text(), generated]).toEqual([200, ANSWER, 1]);
    expect(upstream.requests.length).toBeGreaterThan(1);
  });

  test('who leaves takes the job along: nothing is generated', async () => {
    const leaving = new AbortController();
    const answer = ask({}, leaving.signal);
    await refused();
    leaving.abort();
    await expect(answer).rejects.toThrow();
    await idle();
    isLoading = false;
    expect((await ask()).status).toBe(200);
    expect(generated).toBe(1);
  });

  test('a job that is cancelled stays cancelled: nothing is generated', async () => {
    const accepted = await ask({ prefer: 'respond-async' });
    expect(accepted.status).toBe(202);
    const job = new URL(accepted.headers.get('location') ?? '', berth.url);
    await refused();
    expect((await fetch(job, { method: 'DELETE' })).status).toBe(200);
    await idle();
    isLoading = false;
    expect((await ask()).status).toBe(200);
    expect(generated).toBe(1);
    expect(await (await fetch(job)).json()).toMatchObject({ state: 'cancelled' });
  });
});
