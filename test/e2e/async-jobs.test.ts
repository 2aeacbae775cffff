import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { Gate, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat, namesOf } from '../support/requests.ts';

let model: ScriptedModelServer;
let berth: BerthSystem;
const gates: Gate[] = [];

beforeAll(async () => {
  model = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: model.url });
});
afterAll(async () => {
  await berth.stop();
  await model.close();
});
afterEach(() => {
  for (const gate of gates.splice(0)) gate.release();
});

function hold(): Gate {
  const gate = model.hold();
  gates.push(gate);
  return gate;
}

async function ask(
  text: string,
  headers: Record<string, string> = {},
  extra: Record<string, unknown> = {},
  signal: AbortSignal | null = null,
): Promise<Response> {
  const request = chat(text, extra);
  return fetch(`${berth.url}/v1/chat/completions`, {
    ...request,
    headers: { ...(request.headers as Record<string, string>), ...headers },
    signal,
  });
}

const ran = (name: string): number =>
  namesOf(model.generations()).filter((one) => one === name).length;

describe('Prefer: respond-async', () => {
  test('is answered with 202 and the job as soon as it is stored, and the job runs without its client', async () => {
    const gate = hold();
    const response = await ask('later', { prefer: 'respond-async' });
    expect(response.status).toBe(202);
    const job = (await response.json()) as JobObject;
    expect(response.headers.get('location')).toBe(`/berth/jobs/${job.id}`);
    expect(response.headers.get('preference-applied')).toBe('respond-async');
    expect(response.headers.get('x-berth-job-id')).toBe(job.id);
    expect(response.headers.get('x-berth-band')).toBe('normal');
    expect(response.headers.get('x-berth-priority')).toBe('0');
    expect(job).toMatchObject({
      object: 'job',
      state: 'waiting',
      model: 'demo-chat-small',
      route: '/v1/chat/completions',
      member: 'shared',
      tier: 'free',
      band: 'normal',
      base_priority: 0,
      started_at: null,
      completed_at: null,
      attempts: 0,
      error: null,
      urls: { self: `/berth/jobs/${job.id}`, result: `/berth/jobs/${job.id}/result` },
    });
    expect(Math.abs(job.created_at - Date.now() / 1000)).toBeLessThan(10);
    await gate.arrived;
    gate.release();
    await eventually(() => ran('later') === 1, { what: 'the run' });
  });

  test('with a wait gives the answer itself when the job ends in time', async () => {
    const plain = await ask('in time');
    const response = await ask('in time', { prefer: 'respond-async, wait=20' });
    expect(response.status).toBe(200);
    expect(response.headers.get('preference-applied')).toBe('respond-async, wait=20');
    expect(response.headers.get('content-type')).toBe(plain.headers.get('content-type'));
    const [one, other] = (await Promise.all([plain.json(), response.json()])) as {
      choices: unknown;
    }[];
    expect(one?.choices).toEqual(other?.choices);
  });

  test('with a wait gives 202 and the running job when it does not, and the job goes on', async () => {
    const gate = hold();
    const response = await ask('too long', { prefer: 'respond-async; foo, WAIT="1"' });
    expect(response.status).toBe(202);
    expect(response.headers.get('preference-applied')).toBe('respond-async, wait=1');
    expect(await response.json()).toMatchObject({ state: 'running', attempts: 1 });
    gate.release();
    await eventually(() => ran('too long') === 1, { what: 'the run' });
  });

  test('a client that leaves while it waits takes nothing along', async () => {
    const gate = hold();
    const leave = new AbortController();
    const response = ask('left', { prefer: 'respond-async, wait=60' }, {}, leave.signal);
    response.catch(() => undefined);
    await gate.arrived;
    leave.abort();
    await response.catch(() => undefined);
    // A cancel would reach the model server within a second.
    await expect(
      eventually(() => model.generations().some(({ aborted }) => aborted), {
        what: 'an abort',
        timeoutMs: 1200,
      }),
    ).rejects.toThrow('an abort');
    gate.release();
    await eventually(() => ran('left') === 1, { what: 'the run' });
  });

  test('wait alone is an ordinary request', async () => {
    const response = await ask('ordinary', { prefer: 'wait=1' });
    expect(response.status).toBe(200);
    expect(response.headers.get('preference-applied')).toBeNull();
  });
});
