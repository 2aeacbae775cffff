import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { monotonicMs } from '../../src/demo-model-server/pace.ts';
import type { FilmObject } from '../../src/gateway/film-view.ts';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { modelFailure, startDemoModelServer } from '../support/demo-model-server.ts';
import type { RequestRecord, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat, namesOf, ranked } from '../support/requests.ts';

let demo: ScriptedModelServer;
let system: BerthSystem;

beforeEach(async () => {
  demo = await startDemoModelServer({ tokensPerSecond: 200 });
  system = await BerthSystem.start({ modelServerUrl: demo.url });
});
afterEach(async () => {
  await system.stop();
  await demo.close();
});

const nameOf = (request: RequestRecord): string => String(request.headers['x-test-name']);
const isShot = (number: number) => (request: RequestRecord) => nameOf(request) === `shot ${number}`;

function shots(count: number, takes: boolean): object[] {
  return Array.from({ length: count }, (_, index) => ({
    path: '/v1/chat/completions',
    headers: { 'X-Test-Name': `shot ${index + 1}` },
    body: {
      model: 'demo-chat-small',
      max_tokens: 4,
      messages: [{ role: 'user', content: `shot ${index + 1}` }],
      metadata: {},
    },
    ...(takes && index > 0 ? { take: [{ from: '/id', to: '/metadata/before' }] } : {}),
  }));
}

/** A shot with these headers of its own. */
const aShotWith = (headers: Record<string, string>): object => ({
  path: '/v1/chat/completions',
  headers: { 'X-Test-Name': 'a shot', ...headers },
  body: { model: 'demo-chat-small', messages: [{ role: 'user', content: 'a shot' }] },
});

async function call(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  return fetch(`${system.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-berth-member': 'producer', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const film = async (path: string): Promise<FilmObject> =>
  (await (await call('GET', path)).json()) as FilmObject;

async function until(
  path: string,
  found: (film: FilmObject) => boolean,
  what: string,
): Promise<FilmObject> {
  return eventually(
    async () => {
      const now = await film(path);
      return found(now) ? now : null;
    },
    { timeoutMs: 30_000, everyMs: 50, what },
  );
}

test('a film of 60 shots beside interactive traffic survives a kill of each process, a pause and a failed shot: all in order, once each', async () => {
  const gates = new Map([10, 20, 30].map((shot) => [shot, demo.hold(isShot(shot))]));
  demo.fault(modelFailure(500), { where: isShot(40) });
  const made = await call('POST', '/berth/films', { shots: shots(60, true) });
  expect(made.status).toBe(202);
  const path = String(made.headers.get('location'));
  const over = new AbortController();
  const shotsBegun = (): number =>
    demo.attempts().filter((request) => nameOf(request).startsWith('shot')).length;
  /** When each chat that got its answer had been accepted, by the model server's clock. */
  const acceptedAtMs = new Map<string, number>();
  const clockMs = Date.now() - monotonicMs();
  const ask = async (name: string): Promise<void> => {
    const url = `${system.url}/v1/chat/completions`;
    const answer = await fetch(url, ranked(name, 'interactive'));
    await answer.text();
    if (answer.status !== 200) return;
    const id = String(answer.headers.get('x-berth-job-id'));
    const { created_at: createdAt } = (await (
      await fetch(`${system.url}/berth/jobs/${id}`)
    ).json()) as JobObject;
    acceptedAtMs.set(name, createdAt * 1000 - clockMs);
  };
  const traffic = (async () => {
    for (let index = 0; !over.signal.aborted; index += 1) {
      await ask(`chat ${index}`).catch(() => undefined);
      const before = shotsBegun();
      await eventually(() => over.signal.aborted || shotsBegun() > before, {
        timeoutMs: 60_000,
        what: 'another shot to begin',
      });
    }
  })();

  await gates.get(10)?.arrived;
  await system.processes.gpu?.kill('SIGKILL');
  gates.get(10)?.release();
  await system.startProcess('gpu');
  await gates.get(20)?.arrived;
  await system.redis.kill('SIGKILL');
  await system.redis.restart();
  gates.get(20)?.release();
  await gates.get(30)?.arrived;
  await system.processes.ingress?.kill('SIGKILL');
  await system.processes.scorer?.kill('SIGKILL');
  await system.startProcess('scorer');
  await system.startProcess('ingress');
  await system.ready();
  expect((await call('POST', `${path}/pause`)).status).toBe(200);
  gates.get(30)?.release();
  const paused = await until(path, ({ done }) => done === 30, 'the running shot to end');
  expect(paused).toMatchObject({ state: 'paused', total: 60, shot: 31 });
  expect(paused.shots[30]).toMatchObject({ state: 'paused' });
  expect((await call('POST', `${path}/resume`)).status).toBe(200);
  const failed = await until(path, ({ state }) => state === 'failed', 'shot 40 to fail');
  expect(failed).toMatchObject({
    done: 39,
    reason: 'shot 40 failed: the model server answered 500',
  });
  expect((await call('POST', `${path}/retry`)).status).toBe(200);
  const completed = await until(path, ({ state }) => state === 'completed', 'the film to be done');
  over.abort();
  await traffic;
  expect(completed).toMatchObject({ done: 60, total: 60, eta_seconds: { p50: 0, p90: 0 } });
  expect(completed.shots.map(({ state }) => state)).toEqual(completed.shots.map(() => 'completed'));
  expect(completed.shots[39]?.tries).toBe(2);
  const names = namesOf(demo.generations());
  expect(names.filter((name) => name.startsWith('shot'))).toEqual(
    Array.from({ length: 60 }, (_, index) => `shot ${index + 1}`),
  );
  expect(names.filter((name) => name.startsWith('chat')).length).toBeGreaterThan(10);
  expect(demo.overlaps).toBe(0);
  // No chat waits for more than a shot that runs, or was given out just before the chat came.
  const begun = demo.attempts().filter((request) => nameOf(request).startsWith('shot'));
  const waits = [...acceptedAtMs].map(([name, acceptedAt]) => {
    const run = demo.generations().find((request) => nameOf(request) === name);
    const isBetween = ({ gpuStartedAtMs }: RequestRecord): boolean =>
      Number(gpuStartedAtMs) > acceptedAt && Number(gpuStartedAtMs) < Number(run?.gpuStartedAtMs);
    return begun.filter(isBetween).length;
  });
  expect(waits.length).toBeGreaterThan(10);
  expect(Math.max(...waits)).toBeLessThanOrEqual(1);
  const taken = demo.generations().filter(isShot(60)).at(-1)?.body;
  expect(String(taken)).toMatch(/"before":"chatcmpl/);
}, 120_000);

test('alone on the GPU a film leaves it no more idle than jobs that wait all at once', async () => {
  const gap = (prefix: string): number => {
    const ours = demo.generations().filter((request) => nameOf(request).startsWith(prefix));
    const gaps = ours
      .slice(1)
      .map((request, index) => Number(request.gpuStartedAtMs) - Number(ours[index]?.endedAtMs));
    return gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)] ?? NaN;
  };
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) =>
      (await fetch(`${system.url}/v1/chat/completions`, chat(`job ${index}`))).text(),
    ),
  );
  const made = await call('POST', '/berth/films', { shots: shots(40, true) });
  const path = String(made.headers.get('location'));
  await until(path, ({ state }) => state === 'completed', 'the film to be done');
  process.stdout.write(`median gap: jobs ${gap('job')} ms, shots ${gap('shot')} ms\n`);
  expect(gap('shot')).toBeLessThan(gap('job') + 8);
}, 60_000);

test('a film can be followed, belongs to its member, and its shots are batch unless it says otherwise', async () => {
  const gate = demo.hold();
  const made = await call('POST', '/berth/films', { shots: shots(3, false) });
  const path = String(made.headers.get('location'));
  await gate.arrived;
  const events = await call('GET', `${path}/events`);
  expect(events.headers.get('content-type')).toBe('text/event-stream');
  const now = await film(path);
  const self = now.shots[0]?.urls?.self ?? '';
  expect(self).toBe(`/berth/jobs/${String(now.job_id)}`);
  gate.release();
  const text = await events.text();
  const states = [...text.matchAll(/"state":"([a-z]+)"/g)].map(([, state]) => state);
  expect(states[0]).toBe('running');
  expect(states.at(-1)).toBe('completed');
  await eventually(
    async () =>
      /berth_dispatches_total\{[^}]*band="batch"[^}]*\} 3/.test(
        await (await call('GET', '/berth/metrics')).text(),
      ),
    { what: 'three dispatches of batch' },
  );
  const other = { 'x-berth-member': 'somebody else' };
  const theirs = await call('GET', path, undefined, other);
  const unknown = await call(
    'GET',
    path.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
  );
  expect(theirs.status).toBe(404);
  expect(await theirs.text()).toBe(await unknown.text());
  expect((await call('DELETE', path, undefined, other)).status).toBe(404);
  const list = (await (await call('GET', '/berth/films')).json()) as { data: { id: string }[] };
  expect(list.data.map(({ id }) => `/berth/films/${id}`)).toEqual([path]);
});

test('a film with a shot that cannot be is refused, names the field, and leaves nothing', async () => {
  const refused: [shot: object, param: string][] = [
    [{ path: 'v1/chat/completions', body: { model: 'demo-chat-small' } }, 'shots[1].path'],
    [{ path: '/v1/models', method: 'GET' }, 'shots[1].path'],
    [{ path: '/unload', method: 'GET' }, 'shots[1].path'],
    [{ path: '/v1/chat/completions', body: {} }, 'shots[1].body.model'],
    [{ path: '/v1/chat/completions', body: { model: 'nobody' } }, 'shots[1].body.model'],
    [
      { path: '/v1/chat/completions', body: { model: 'demo-chat-small' }, method: 'BREW' },
      'shots[1].method',
    ],
    [
      {
        path: '/v1/chat/completions',
        body: { model: 'demo-chat-small' },
        take: [{ from: 'seed', to: '/seed' }],
      },
      'shots[1].take[0].from',
    ],
    [
      {
        path: '/v1/chat/completions',
        body: { model: 'demo-chat-small' },
        headers: { 'bad name': 'x' },
      },
      'shots[1].headers.bad name',
    ],
    [
      {
        path: '/v1/chat/completions',
        body: {
          model: 'demo-chat-small',
          deep: JSON.parse('['.repeat(600) + ']'.repeat(600)) as unknown,
        },
      },
      'shots[1].body',
    ],
    [aShotWith({ 'Cancel-After': 'soon' }), 'shots[1].headers.Cancel-After'],
    [
      aShotWith({ 'x-berth-start-deadline': 'yesterday' }),
      'shots[1].headers.X-Berth-Start-Deadline',
    ],
    [aShotWith({ 'Cancel-After': '9', 'cancel-after': '9' }), 'shots[1].headers.Cancel-After'],
    [aShotWith({ 'X-Berth-Webhook': 'ftp://a.example/' }), 'shots[1].headers.X-Berth-Webhook'],
  ];
  for (const [shot, param] of refused) {
    const answer = await call('POST', '/berth/films', { shots: [...shots(1, false), shot] });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { code: 'bad_request', param } },
    ]);
  }
  const ofTheFilm = [
    ['X-Berth-Start-Deadline', '90'],
    ['Cancel-After', '90'],
    ['X-Berth-Webhook', 'ftp://a.example/'],
  ] as const;
  for (const [name, value] of ofTheFilm) {
    const answer = await call(
      'POST',
      '/berth/films',
      { shots: shots(1, false) },
      { [name]: value },
    );
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { code: 'bad_request', param: name } },
    ]);
  }
  expect(await (await call('GET', '/berth/films')).json()).toMatchObject({ data: [] });
  expect(demo.attempts()).toEqual([]);
  expect(system.output()).not.toContain('request.failed');
});

test('a shot that has not started in time pauses its film; made anew it has its time again', async () => {
  const gate = demo.hold();
  const front = fetch(`${system.url}/v1/chat/completions`, chat('front'));
  await gate.arrived;
  const made = await call('POST', '/berth/films', {
    shots: [aShotWith({ 'X-Berth-Start-Deadline': '1', 'Cancel-After': '1h' })],
  });
  const path = String(made.headers.get('location'));
  const paused = await until(path, ({ state }) => state === 'paused', 'the film to be paused');
  expect(paused).toMatchObject({
    done: 0,
    reason: 'the shot that waited left the queue: start_deadline_passed',
  });
  gate.release();
  expect((await front).status).toBe(200);
  await call('POST', `${path}/resume`);
  await until(path, ({ state }) => state === 'completed', 'the film to be completed');
  expect(namesOf(demo.generations())).toEqual(['front', 'a shot']);
});

test('a film that is asked for again under its Idempotency-Key is the same film; other shots under it are refused', async () => {
  const key = { 'idempotency-key': 'reel 1' };
  const asked = { shots: shots(2, false) };
  const made = await Promise.all(
    [1, 2, 3].map(async () => call('POST', '/berth/films', asked, key)),
  );
  expect(made.map(({ status }) => status)).toEqual([202, 202, 202]);
  const paths = new Set(made.map(({ headers }) => headers.get('location')));
  expect(paths.size).toBe(1);
  const path = String([...paths][0]);
  await until(path, ({ state }) => state === 'completed', 'the film to be done');
  const again = await call('POST', '/berth/films', asked, key);
  expect([again.status, again.headers.get('location')]).toEqual([202, path]);
  const other = await call('POST', '/berth/films', { shots: shots(3, false) }, key);
  expect([other.status, await other.json()]).toMatchObject([
    422,
    { error: { code: 'idempotency_mismatch' } },
  ]);
  const theirs = await call('POST', '/berth/films', asked, { ...key, 'x-berth-member': 'another' });
  expect(theirs.headers.get('location')).not.toBe(path);
  expect((await film(path)).done).toBe(2);
});
