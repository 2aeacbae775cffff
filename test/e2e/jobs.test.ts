import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Explanation } from '../../src/gateway/explanation.ts';
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

/** Holds the GPU with a job of its own, so that whatever comes next waits. */
async function occupy(): Promise<{ gate: Gate; job: JobObject }> {
  const gate = model.hold();
  gates.push(gate);
  const job = await later('occupies');
  await gate.arrived;
  return { gate, job };
}

async function later(
  text: string,
  headers: Record<string, string> = {},
  extra: Record<string, unknown> = {},
): Promise<JobObject> {
  const request = chat(text, extra);
  const response = await fetch(`${berth.url}/v1/chat/completions`, {
    ...request,
    headers: {
      ...(request.headers as Record<string, string>),
      prefer: 'respond-async',
      ...headers,
    },
  });
  expect(response.status).toBe(202);
  return (await response.json()) as JobObject;
}

const get = async (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${berth.url}${path}`, { headers });
const jobOf = async (id: string, query = ''): Promise<JobObject> =>
  (await (await get(`/berth/jobs/${id}${query}`)).json()) as JobObject;
const remove = async (id: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${berth.url}/berth/jobs/${id}`, { method: 'DELETE', headers });
const ended = async (id: string): Promise<JobObject> => {
  await eventually(
    async () => {
      const { state } = await jobOf(id);
      return state !== 'waiting' && state !== 'running';
    },
    { what: `${id} to end` },
  );
  return jobOf(id);
};
const UNKNOWN = '00000000-0000-4000-8000-000000000000';

describe('GET /berth/jobs/{id}', () => {
  test('follows a job from waiting over running to completed', async () => {
    const { gate, job: first } = await occupy();
    const job = await later('second');
    const waiting = await eventually(
      async () => {
        const seen = await jobOf(job.id);
        return seen.position === null ? null : seen;
      },
      { what: 'a position' },
    );
    expect(waiting).toMatchObject({ state: 'waiting', position: 1, started_at: null });
    expect(waiting.eta_seconds?.p90).toBeGreaterThan(0);
    const running = await jobOf(first.id);
    expect(running).toMatchObject({ state: 'running', attempts: 1, position: null });
    expect(running.started_at).toBeGreaterThanOrEqual(running.created_at);
    gate.release();
    const done = await ended(job.id);
    expect(done).toMatchObject({
      state: 'completed',
      position: null,
      eta_seconds: null,
      error: null,
      attempts: 1,
    });
    expect(done.metrics.queue_seconds).toBeCloseTo(Number(done.started_at) - done.created_at, 5);
    expect(done.metrics.gpu_seconds).toBeGreaterThanOrEqual(0);
    expect(done.metrics.swap_seconds).toBeGreaterThanOrEqual(0);
    expect(Number(done.expires_at) - Number(done.completed_at)).toBeCloseTo(86_400, 0);
  });

  test('answers 304 to whoever knows it, and again in full when it has changed', async () => {
    const { gate, job } = await occupy();
    gate.release();
    await ended(job.id);
    const first = await get(`/berth/jobs/${job.id}`);
    const tag = String(first.headers.get('etag'));
    const same = await get(`/berth/jobs/${job.id}`, { 'if-none-match': `W/"other", ${tag}` });
    expect(same.status).toBe(304);
    expect(same.headers.get('etag')).toBe(tag);
    expect((await get(`/berth/jobs/${job.id}`, { 'if-none-match': '"x"' })).status).toBe(200);
  });

  test('with a wait answers at the next change of state, and at once when there will be none', async () => {
    const { gate, job } = await occupy();
    const polled = jobOf(job.id, '?wait=30');
    gate.release();
    expect((await polled).state).toBe('completed');
    const before = performance.now();
    expect((await jobOf(job.id, '?wait=30')).state).toBe('completed');
    expect(performance.now() - before).toBeLessThan(2000);
  });

  test('with a wait that is over answers what there is', async () => {
    const { job } = await occupy();
    expect((await jobOf(job.id, '?wait=1')).state).toBe('running');
    expect((await get(`/berth/jobs/${job.id}?wait=x`)).status).toBe(400);
  });
});

describe('another member', () => {
  test('gets the same bytes for a job of somebody else as for none, at every route', async () => {
    const { gate, job } = await occupy();
    const mine = await later('mine', { 'x-berth-member': 'ann' });
    const ask = async (method: string, id: string, below: string): Promise<string> => {
      const response = await fetch(`${berth.url}/berth/jobs/${id}${below}`, {
        method,
        headers: { 'x-berth-member': 'bob' },
      });
      const headers = [...response.headers].filter(([name]) => name !== 'date');
      return JSON.stringify([response.status, headers, await response.text()]);
    };
    for (const [method, below] of [
      ['GET', ''],
      ['GET', '?wait=5'],
      ['DELETE', ''],
      ['GET', '/result'],
      ['GET', '/events'],
      ['GET', '/stream'],
      ['GET', '/explain'],
    ] as const) {
      const unknown = await ask(method, UNKNOWN, below);
      expect(await ask(method, mine.id, below)).toBe(unknown);
      expect(await ask(method, 'no-id', below)).toBe(unknown);
      expect(unknown).toContain('job_not_found');
      expect(unknown.startsWith('[404,')).toBe(true);
    }
    const list = (await (await get('/berth/jobs', { 'x-berth-member': 'bob' })).json()) as {
      data: unknown[];
    };
    expect(list.data).toEqual([]);
    expect((await get(`/berth/jobs/${mine.id}`, { 'x-berth-member': 'ann' })).status).toBe(200);
    gate.release();
    await ended(job.id);
    await ended(mine.id);
  });
});

describe('GET /berth/jobs/{id}/explain', () => {
  const explained = async (id: string, headers: Record<string, string> = {}) =>
    (await (await get(`/berth/jobs/${id}/explain`, headers)).json()) as Explanation;
  const reasons = (of: readonly { because: string }[]): string[] =>
    of.map(({ because }) => because);

  test('answers "why did my image take 20 minutes", before and after: its pieces are the wait', async () => {
    const ann = { 'x-berth-member': 'ann' };
    const { gate, job: first } = await occupy();
    const other = await later('has its turn before', { 'x-berth-member': 'bob' });
    const mine = await later('mine', ann);
    const own = await later('mine, more urgent', { ...ann, 'x-llamaswap-priority': '5' });
    const urgent = await later('urgent', { 'x-llamaswap-priority': 'interactive' });
    const waiting = await eventually(
      async () => {
        const told = await explained(mine.id, ann);
        return told.ahead_total === 4 ? told : null;
      },
      { what: 'a plan that names them all' },
    );
    expect(waiting).toMatchObject({ state: 'waiting', position: 4 });
    expect(reasons(waiting.ahead)).toEqual(['running', 'higher_band', 'base', 'fair_turn']);
    expect(waiting.ahead.map(({ job }) => job)).toEqual([
      "another member's job",
      "another member's job",
      own.id,
      "another member's job",
    ]);
    expect(waiting.score).toMatchObject({ band: 0, tier: 0, affinity: 10 });
    expect(reasons(waiting.timeline)).toEqual(['running']);
    const everything = await explained(mine.id);
    expect(everything.ahead.map(({ job }) => job)).toEqual([
      ...[first.id, urgent.id, own.id, other.id],
    ]);
    gate.release();
    const done = await ended(mine.id);
    const told = await eventually(
      async () => {
        const last = await explained(mine.id, ann);
        return last.totals.fair_turn === undefined ? null : last;
      },
      { what: 'the records of all runs' },
    );
    expect(reasons(told.timeline).filter((because) => because !== 'dispatch')).toEqual([
      ...['running', 'higher_band', 'base', 'fair_turn'],
    ]);
    expect(told).toMatchObject({ state: 'completed', ahead: [], position: null });
    expect(told.score).toMatchObject({ band: 0, tier: 0, affinity: 10 });
    expect(told.wait_seconds).toBe(done.metrics.queue_seconds);
    const pieces = told.timeline.reduce((sum, { seconds }) => sum + seconds, 0);
    expect(pieces).toBeCloseTo(told.wait_seconds, 9);
    expect(told.timeline[0]?.from).toBe(done.created_at);
    expect(told.timeline.at(-1)?.to).toBe(done.started_at);
    expect(told.summary).toMatch(/^It waited /);
  });
});

describe('GET /berth/jobs', () => {
  interface List {
    object: string;
    data: JobObject[];
    has_more: boolean;
    next_cursor: string | null;
  }
  const list = async (query: string): Promise<List> =>
    (await (await get(`/berth/jobs${query}`, { 'x-berth-member': 'carla' })).json()) as List;

  test('lists the member’s jobs, newest first, in pages, by state, model and band', async () => {
    const { gate, job: first } = await occupy();
    const own = { 'x-berth-member': 'carla' };
    const a = await later('a', own);
    const b = await later('b', { ...own, 'x-llamaswap-priority': 'batch' });
    const c = await later('c', own, { model: 'demo-chat-large' });
    const ids = (page: List): string[] => page.data.map(({ id }) => id);
    const all = await list('');
    expect(all).toMatchObject({ object: 'list', has_more: false, next_cursor: null });
    expect(ids(all)).toEqual([c.id, b.id, a.id]);
    const page = await list('?limit=2');
    expect(ids(page)).toEqual([c.id, b.id]);
    expect(page.has_more).toBe(true);
    expect(ids(await list(`?limit=2&cursor=${page.next_cursor}`))).toEqual([a.id]);
    expect(ids(await list('?band=batch'))).toEqual([b.id]);
    expect(ids(await list('?model=demo-chat-large'))).toEqual([c.id]);
    expect(ids(await list('?state=completed,running'))).toEqual([]);
    expect(ids(await list('?state=waiting,running&band=normal'))).toEqual([c.id, a.id]);
    for (const query of ['?state=x', '?band=x', '?cursor=x', '?limit=-1'])
      expect((await get(`/berth/jobs${query}`)).status).toBe(400);
    // An administrator's list is everybody's.
    const everybodys = (await (await get('/berth/jobs?limit=4')).json()) as List;
    expect(ids(everybodys)).toEqual([c.id, b.id, a.id, first.id]);
    gate.release();
    for (const { id } of [a, b, c]) await ended(id);
    expect(ids(await list('?state=completed'))).toEqual([c.id, b.id, a.id]);
  });
});

describe('DELETE /berth/jobs/{id}', () => {
  test('ends a waiting job for good: it never reaches the model server, and stays cancelled', async () => {
    const { gate } = await occupy();
    const job = await later('unwanted');
    for (let round = 0; round < 2; round += 1) {
      const response = await remove(job.id);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({
        id: job.id,
        state: 'cancelled',
        started_at: null,
        error: { code: 'cancelled' },
      });
    }
    gate.release();
    const next = await later('next');
    await ended(next.id);
    expect(namesOf(model.generations())).not.toContain('unwanted');
    expect((await get(`/berth/jobs/${job.id}/result`)).status).toBe(409);
  });

  test('aborts a running job within a second, and the next one runs', async () => {
    const { job } = await occupy();
    const next = await later('after the cancelled one');
    const before = performance.now();
    const response = await remove(job.id);
    expect(await response.json()).toMatchObject({ state: 'cancelled' });
    expect(performance.now() - before).toBeLessThan(1500);
    expect((await ended(next.id)).state).toBe('completed');
  });

  test('leaves a job that has ended as it was', async () => {
    const job = await later('finished');
    await ended(job.id);
    const response = await remove(job.id);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ state: 'completed' });
    expect((await get(`/berth/jobs/${job.id}/result`)).status).toBe(200);
  });

  test('gives a waiting sync client of the job a real error', async () => {
    const { gate } = await occupy();
    const answer = fetch(`${berth.url}/v1/chat/completions`, chat('waits in vain'));
    const waiting = await eventually(
      async () => {
        const page = (await (await get('/berth/jobs?state=waiting')).json()) as {
          data: JobObject[];
        };
        return page.data[0] ?? null;
      },
      { what: 'the waiting job' },
    );
    await remove(waiting.id);
    const response = await answer;
    expect(response.status).toBe(409);
    expect(await response.json()).toMatchObject({ error: { code: 'cancelled' } });
    gate.release();
  });
});
