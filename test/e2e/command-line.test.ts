import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, jest, test } from '@jest/globals';
import type { JobObject } from '../../src/gateway/job-object.ts';
import type { FilmObject } from '../../src/gateway/film-view.ts';
import { newNotes, writeNotes } from '../../src/cli/film-state.ts';
import { readShots } from '../../src/cli/shots-file.ts';
import { BIN, startCommand } from '../support/berth-command.ts';
import type { BerthCommand, CommandEnd } from '../support/berth-command.ts';
import { BerthSystem } from '../support/berth-system.ts';
import { modelFailure, startDemoModelServer } from '../support/demo-model-server.ts';
import type { RequestRecord, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { keyedConfig, secretOf } from '../support/keyed-config.ts';
import { namesOf } from '../support/requests.ts';

// Each command is a process of its own, and slow to start on a busy machine.
jest.setTimeout(90_000);

const KEY = secretOf('ann');
const config = keyedConfig([{ name: 'ann' }, { name: 'bob' }]);
let demo: ScriptedModelServer;
let system: BerthSystem;
let folder: string;
let started: BerthCommand[];

beforeAll(async () => {
  demo = await startDemoModelServer();
  system = await BerthSystem.start({
    modelServerUrl: demo.url,
    env: { BERTH_CONFIG: config.file },
  });
});
afterAll(async () => {
  await system.stop();
  await demo.close();
  config.remove();
});
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'berth-cli-'));
  started = [];
});
afterEach(() => {
  for (const { child, output } of started) {
    child.kill('SIGKILL');
    if (output().includes(KEY)) throw new Error('a command showed its key');
  }
  rmSync(folder, { recursive: true });
});

function start(args: readonly string[], env: Record<string, string> = {}, program?: string) {
  const command = startCommand(args, {
    env: { BERTH_URL: system.url, BERTH_KEY: KEY, ...env },
    cwd: folder,
    ...(program === undefined ? {} : { program }),
  });
  started.push(command);
  return command;
}
const berth = async (...args: string[]): Promise<CommandEnd> => start(args).end;

const get = async (target: string): Promise<Response> =>
  fetch(`${system.url}${target}`, { headers: { authorization: `Bearer ${KEY}` } });
const chatBody = (text: string): string =>
  JSON.stringify({ messages: [{ role: 'user', content: text }], max_tokens: 4 });
const isNamed = (name: string) => (request: RequestRecord) =>
  request.headers['x-test-name'] === name;

async function submitted(name: string): Promise<string> {
  const { status, stdout, stderr } = await berth(
    ...['submit', '/v1/chat/completions', '--model', 'demo-chat-small'],
    ...['--data', chatBody(name), '--header', `X-Test-Name: ${name}`, '--intent', 'image'],
  );
  expect([status, stderr]).toEqual([0, expect.stringContaining('band interactive, priority 100')]);
  expect(stdout).toMatch(/^[0-9a-f-]{36}\n$/);
  return stdout.trim();
}

test('a chat is submitted, followed to its end and read byte by byte', async () => {
  const gate = demo.hold(isNamed('chat'));
  const id = await submitted('chat');
  await gate.arrived;
  const watching = start(['watch', id]);
  await eventually(() => watching.output().includes('running'), {
    what: 'the watch to see the run',
    timeoutMs: 15_000,
  });
  const early = await berth('result', id);
  expect([early.status, early.stdout]).toEqual([1, '']);
  expect(early.stderr).toContain(`berth watch ${id} waits for it`);
  gate.release();
  const { status, stdout } = await watching.end;
  expect(status).toBe(0);
  expect(stdout).toMatch(/running.*\ncompleted; .* on the GPU\n$/);
  expect(await berth('result', id)).toEqual({
    status: 0,
    stdout: await (await get(`/berth/jobs/${id}/result`)).text(),
    stderr: '',
  });
});

test('an image goes to a file that is not replaced unawares; what the model server refuses shows in the exit code', async () => {
  writeFileSync(path.join(folder, 'body.json'), '{"model":"demo-image","prompt":"a pier"}');
  demo.fault(modelFailure(422, 'no such size'), { where: isNamed('refused') });
  const [made, refused] = await Promise.all([
    berth(...['submit', '/v1/images/generations', '--data', '@body.json', '--wait', '--json']),
    submitted('refused'),
  ]);
  const { id, state } = JSON.parse(made.stdout) as JobObject;
  expect([made.status, state]).toEqual([0, 'completed']);
  expect((await berth('result', id, '-o', 'image')).status).toBe(0);
  const bytes = Buffer.from(await (await get(`/berth/jobs/${id}/result`)).arrayBuffer());
  expect(readFileSync(path.join(folder, 'image')).equals(bytes)).toBe(true);
  const [again, forced, other] = await Promise.all([
    berth('result', id, '-o', 'image'),
    berth('result', refused, '-o', 'answer'),
    berth('watch', refused),
  ]);
  expect([again.status, again.stderr]).toEqual([1, expect.stringContaining('--force')]);
  expect(forced.status).toBe(4);
  expect(other.status).toBe(0);
  expect(readFileSync(path.join(folder, 'answer'), 'utf8')).toContain('no such size');
  expect((await berth('result', id, '-o', 'answer', '--force')).status).toBe(0);
  expect(readFileSync(path.join(folder, 'answer')).equals(bytes)).toBe(true);
  expect(readdirSync(folder).toSorted()).toEqual(['answer', 'body.json', 'image']);
});

test('a job is shown in the queue and cancelled; an interrupted command leaves its job and says how to go on', async () => {
  const gate = demo.hold(isNamed('long'));
  const id = await submitted('long');
  await gate.arrived;
  const shown = async (): Promise<string> => (await start(['queue'], {}, BIN).end).stdout;
  await eventually(
    async () => new RegExp(`runs +${id} +ann +demo-chat-small`).test(await shown()),
    {
      what: 'the queue to show the run',
      timeoutMs: 15_000,
    },
  );
  const watching = start(['watch', id]);
  await eventually(() => watching.output().includes('running'), {
    what: 'the watch to see the run',
    timeoutMs: 15_000,
  });
  watching.child.kill('SIGINT');
  const stopped = await watching.end;
  expect([stopped.status, stopped.stderr]).toEqual([
    130,
    expect.stringContaining(`berth watch ${id} goes on`),
  ]);
  expect(((await (await get(`/berth/jobs/${id}`)).json()) as JobObject).state).toBe('running');
  const explained = await berth('explain', id);
  expect([explained.status, explained.stderr]).toEqual([0, '']);
  expect(explained.stdout).toMatch(/^It waited .*\n\n.* points\n/);
  const json = JSON.parse((await berth('explain', id, '--json')).stdout) as object;
  expect(json).toMatchObject({ id, object: 'explanation', state: 'running' });
  expect(await berth('cancel', id)).toEqual({ status: 0, stdout: `${id} cancelled\n`, stderr: '' });
  gate.release();
  expect((await berth('watch', id)).status).toBe(2);
});

test('a film whose command is killed goes on as the same film when the command runs again', async () => {
  const lines = [1, 2, 3, 4, 5].map((shot) =>
    JSON.stringify({
      path: '/v1/chat/completions',
      headers: { 'X-Test-Name': `shot ${shot}` },
      body: { ...(JSON.parse(chatBody(`shot ${shot}`)) as object), model: 'demo-chat-small' },
    }),
  );
  writeFileSync(path.join(folder, 'shots.jsonl'), `${lines.join('\n')}\n`);
  const run = ['film', 'run', 'shots.jsonl', '--out', 'out'];
  const gate = demo.hold(isNamed('shot 3'));
  const first = start(run);
  const out = path.join(folder, 'out');
  await eventually(() => existsSync(path.join(out, '0002.json')), {
    what: 'the second result',
    timeoutMs: 20_000,
  });
  await gate.arrived;
  first.child.kill('SIGKILL');
  await first.end;
  gate.release();
  const { status, stdout, stderr } = await start(run).end;
  expect([status, stderr]).toEqual([0, expect.stringContaining('going on with film')]);
  expect(stdout).toMatch(/completed, 5 of 5 shots done\n$/);
  expect(namesOf(demo.generations()).filter((name) => name.startsWith('shot'))).toEqual(
    [1, 2, 3, 4, 5].map((shot) => `shot ${shot}`),
  );
  const { data } = (await (await get('/berth/films')).json()) as { data: FilmObject[] };
  expect(data).toHaveLength(1);
  const film = (await (await get(`/berth/films/${data[0]?.id}`)).json()) as FilmObject;
  expect(readdirSync(out).toSorted()).toEqual([1, 2, 3, 4, 5].map((shot) => `000${shot}.json`));
  for (const { shot, urls } of film.shots) {
    const bytes = readFileSync(path.join(out, `000${shot}.json`), 'utf8');
    expect(bytes).toBe(await (await get(urls?.result ?? '')).text());
  }
  writeFileSync(path.join(folder, 'shots.jsonl'), `${lines.slice(1).join('\n')}\n`);
  const [shown, late, changed] = await Promise.all([
    berth('film', 'status', film.id),
    berth('film', 'pause', film.id),
    start(run).end,
  ]);
  expect(shown.stdout).toContain('completed, 5 of 5 shots done');
  expect([late.status, late.stderr]).toEqual([1, expect.stringContaining('bad_request')]);
  expect([changed.status, changed.stderr]).toEqual([1, expect.stringContaining('--new')]);
});

test('what cannot be is said in one line: a bad shot, a wrong key, an id of nobody’s, an address without Berth', async () => {
  const shot = (model: string): string =>
    JSON.stringify({ path: '/v1/chat/completions', body: { model } });
  writeFileSync(path.join(folder, 'bad.jsonl'), `${shot('demo-chat-small')}\n{"path": 7}\n`);
  writeFileSync(
    path.join(folder, 'no-model.jsonl'),
    `${shot('demo-chat-small')}\n${shot('none')}\n`,
  );
  const nobodys = '0f8b6c1e-3c1d-4b1e-9a57-2d9f0c6e7a41';
  const gone = Buffer.from(shot('demo-chat-small'));
  writeFileSync(path.join(folder, 'gone.jsonl'), gone);
  const notes = newNotes(readShots(gone).sha256, system.url);
  writeNotes(path.join(folder, 'gone.jsonl.film.json'), { ...notes, film: nobodys });
  const said = await Promise.all([
    start(['film', 'run', 'bad.jsonl']).end,
    start(['film', 'run', 'no-model.jsonl']).end,
    start(['queue'], { BERTH_KEY: 'another' }).end,
    start(['watch', nobodys]).end,
    start(['film', 'run', 'gone.jsonl']).end,
    start(['film', 'skip', nobodys], { BERTH_URL: 'http://127.0.0.1:9' }).end,
  ]);
  expect(said.map(({ status, stdout }) => [status, stdout])).toEqual(said.map(() => [1, '']));
  const errors = said.map(({ stderr }) => stderr);
  expect(errors[0]).toMatch(/^berth: line 2: path: [^\n]+\n$/);
  expect(errors[1]).toMatch(/^berth: line 2: body\.model: [^\n]*none[^\n]*\n$/);
  expect(errors[2]).toMatch(/^berth: [^\n]+ \(unauthorized, 401\)\n$/);
  expect(errors[3]).toMatch(/^berth: there is no such job \(job_not_found, 404\)\n$/);
  expect(errors[4]).toMatch(/\nberth: the film [^\n]+ is not kept any more; --new [^\n]+\n$/);
  expect(errors[5]).toMatch(/^berth: http:\/\/127\.0\.0\.1:9 cannot be reached: [^\n]+\n$/);
});
