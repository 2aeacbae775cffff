import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';

const started: ChildProcess[] = [];

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

interface Program {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly errors: () => string;
}

function start(flags: string[], stdio: StdioOptions = ['ignore', 'pipe', 'pipe']): Program {
  const args = ['--import', 'tsx', 'src/demo-model-server/main.ts', ...flags];
  const child = spawn(process.execPath, args, { stdio });
  started.push(child);
  const said = { out: '', err: '' };
  child.stdout?.on('data', (text: Buffer) => (said.out += text.toString()));
  child.stderr?.on('data', (text: Buffer) => (said.err += text.toString()));
  return { child, output: () => said.out, errors: () => said.err };
}

async function listeningUrl(program: Program): Promise<string> {
  const line = await eventually(() => /on (http:\S+)\n/.exec(program.output()), {
    what: 'the line with the address',
    timeoutMs: 15_000,
  });
  return line[1]!;
}

async function exit(program: Program): Promise<unknown[]> {
  return once(program.child, 'exit', { signal: AbortSignal.timeout(15_000) });
}

test('alone it prints one line with its address and ends cleanly when told to', async () => {
  const program = start(['--port', '0', '--cold-load-ms', '0', '--tokens-per-second', '1e4']);
  const url = await listeningUrl(program);
  expect(await (await fetch(`${url}/health`)).text()).toBe('OK');
  const ended = exit(program);
  program.child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
  expect(program.output()).toBe(`demo model server on ${url}\n`);
});

test('a render that nobody is connected for does not keep it from ending', async () => {
  const program = start(['--cold-load-ms', '0']);
  const url = await listeningUrl(program);
  const body = JSON.stringify({ prompt: {}, demo_ms: 600_000 });
  const headers = { 'Content-Type': 'application/json' };
  const taken = await fetch(`${url}/upstream/comfyui_auto/prompt`, {
    method: 'POST',
    headers,
    body,
  });
  expect(await taken.json()).toMatchObject({ prompt_id: expect.any(String) });
  const ended = exit(program);
  program.child.kill('SIGTERM');
  expect(await ended).toEqual([0, null]);
});

test('under a parent it says only over the channel where it listens, and ends with the channel', async () => {
  const program = start([], ['ignore', 'pipe', 'pipe', 'ipc']);
  const [message] = (await once(program.child, 'message')) as [{ type: string; port: number }];
  expect(message).toEqual({ type: 'listening', port: expect.any(Number) });
  expect((await fetch(`http://127.0.0.1:${message.port}/health`)).status).toBe(200);
  const ended = exit(program);
  program.child.disconnect();
  expect(await ended).toEqual([0, null]);
  expect(program.output() + program.errors()).toBe('');
});

test('it logs each request as a line, without any credential in clear', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'demo-model-server-'));
  const file = join(folder, 'requests.jsonl');
  const program = start(['--log-requests', file, '--speed', '1000']);
  const url = await listeningUrl(program);
  const headers = { Authorization: 'Bearer canary', 'X-Berth-Attempt': '2' };
  await fetch(`${url}/upstream/demo-chat/echo?a=1`, { method: 'POST', headers, body: 'x' });
  const ended = exit(program);
  program.child.kill('SIGINT');
  await ended;
  const text = await readFile(file, 'utf8');
  const line = JSON.parse(text) as { headers: Record<string, string> };
  expect(line).toMatchObject({ target: '/upstream/demo-chat/echo?a=1', status: 200, gpu: true });
  expect(line.headers['x-berth-attempt']).toBe('2');
  expect(line.headers.authorization).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(text).not.toContain('canary');
  await rm(folder, { recursive: true });
});

test('a port in use or an unknown flag is one line and exit code 1', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const blocked = start(['--port', `${port}`], ['ignore', 'pipe', 'pipe', 'ipc']);
  expect(await exit(blocked)).toEqual([1, null]);
  expect(blocked.errors()).toMatch(/^demo model server: .*EADDRINUSE.*\n$/);
  taken.close();
  const unknown = start(['--fast']);
  expect(await exit(unknown)).toEqual([1, null]);
  expect(unknown.errors()).toMatch(/^demo model server: .*--fast.*\n$/);
});
