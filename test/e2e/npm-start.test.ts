import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import {
  isRunning,
  recordedProcesses,
  startSupervisor,
  type TestSupervisor,
} from '../support/supervisor.ts';

const program = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

let dataDir = '';
let started: TestSupervisor[] = [];

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'berth-start-'));
});

afterEach(async () => {
  for (const { pid } of started) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  for (const pid of Object.values(recordedProcesses(dataDir))) {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  }
  started = [];
  await rm(dataDir, { recursive: true, force: true });
});

function start(env: Readonly<Record<string, string>> = {}): TestSupervisor {
  const supervisor = startSupervisor(dataDir, [program], {
    ...{ PORT: '0', LOG_LEVEL: 'warn', ...env },
  });
  started.push(supervisor);
  return supervisor;
}

async function readyAddress(supervisor: TestSupervisor): Promise<string> {
  await supervisor.says('berth ready on http://');
  return /berth ready on (\S+)\n/.exec(supervisor.output())![1]!;
}

function chat(url: string): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'demo-chat-small',
      max_tokens: 3,
      messages: [{ role: 'user', content: 'hello' }],
    }),
  });
}

test('with nothing configured it serves from a Redis and a demo model server of its own', async () => {
  const supervisor = start();
  const url = await readyAddress(supervisor);
  expect((await fetch(`${url}/berth/readyz`)).status).toBe(200);
  const answer = await chat(url);
  expect([answer.status, answer.headers.get('x-berth-band')]).toEqual([200, 'normal']);
  const pids = supervisor.running();
  expect(Object.keys(pids).toSorted()).toEqual(['demo', 'gpu', 'ingress', 'redis', 'scorer']);
  supervisor.signal('SIGTERM');
  const { how, afterMs } = await supervisor.ended();
  expect(how).toBe(0);
  expect(afterMs).toBeLessThan(9000);
  expect(Object.values(pids).filter(isRunning)).toEqual([]);
  expect((await readdir(dataDir)).toSorted()).toEqual(['bodies', 'redis', 'seal.key']);
  const lines = supervisor.output().split('\n');
  expect(lines.filter((line) => line.startsWith('berth'))).toEqual([
    'berth: MODEL_SERVER_URL is not set, so the demo model server answers',
    `berth ready on ${url}`,
  ]);
});

test('a Ctrl-C in the terminal ends all of it in good order', async () => {
  const supervisor = start();
  await readyAddress(supervisor);
  const pids = supervisor.running();
  process.kill(-supervisor.pid, 'SIGINT');
  expect((await supervisor.ended()).how).toBe(0);
  expect(Object.values(pids).filter(isRunning)).toEqual([]);
});

test('killed whole and started again at once, it serves again', async () => {
  const first = start();
  await readyAddress(first);
  const before = first.running();
  first.signal('SIGKILL');
  const second = start();
  const answer = await chat(await readyAddress(second));
  expect(answer.status).toBe(200);
  expect(Object.values(before).filter(isRunning)).toEqual([]);
  second.signal('SIGTERM');
  expect((await second.ended()).how).toBe(0);
});

test('each of its processes killed in turn, it serves again by itself', async () => {
  const supervisor = start();
  const url = await readyAddress(supervisor);
  for (const name of ['redis', 'demo', 'scorer', 'gpu', 'ingress']) {
    process.kill(supervisor.running()[name]!, 'SIGKILL');
    await eventually(async () => (await chat(url)).status === 200, {
      timeoutMs: 15_000,
      everyMs: 100,
      what: `an answer after the ${name} process was killed`,
    });
  }
  supervisor.signal('SIGTERM');
  expect((await supervisor.ended()).how).toBe(0);
});

test('a configuration that will not do is refused, each fault in one line, before anything runs', async () => {
  const file = path.join(dataDir, 'berth.json');
  await writeFile(file, '{ "bands": ');
  const supervisor = start({ PORT: 'http', BERTH_CONFIG: file });
  expect((await supervisor.ended()).how).toBe(1);
  const lines = supervisor.output().trimEnd().split('\n');
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/^berth: configuration: PORT: "http" will not do/);
  expect(lines[1]).toMatch(/^berth: configuration: .*berth\.json/);
  expect(await readdir(dataDir)).toEqual(['berth.json']);
});
