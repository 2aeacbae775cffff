import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { compileProcess } from '../support/compiled-process.ts';
import { eventually } from '../support/eventually.ts';
import type { LifecycleOrder } from '../support/lifecycle-process.ts';

/** What a busy machine may add to a promised time. */
const SLACK_MS = 1000;

let program = '';
let started: ChildProcess[] = [];

beforeAll(async () => {
  program = await compileProcess('lifecycle-process.ts');
});

afterEach(() => {
  for (const child of started) child.kill('SIGKILL');
  started = [];
});

afterAll(async () => rm(path.dirname(program), { recursive: true, force: true }));

async function start(order: LifecycleOrder, stdio: StdioOptions = ['ignore', 'pipe', 'pipe']) {
  const child = spawn(process.execPath, [program, JSON.stringify(order)], { stdio });
  started.push(child);
  const messages: unknown[] = [];
  child.on('message', (message) => messages.push(message));
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output += text));
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const says = (text: string) =>
    eventually(() => output.includes(text), { what: `"${text}" to be printed` });
  await eventually(() => output !== '', { what: 'the process to be up' });
  return { child, messages, says, output: () => output, exitCode: async () => (await ended)[0] };
}

test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('%s stops once and exits 0', async (signal) => {
  const one = await start({ graceMs: 5000, stopsWhenTold: true });
  one.child.kill(signal);
  await one.says(`stop because of ${signal}`);
  one.child.kill(signal);
  one.child.kill('SIGTERM');
  one.child.kill('SIGUSR2');
  expect(await one.exitCode()).toBe(0);
  expect(one.output()).toBe(`up\nprocess.stopping\nstop because of ${signal}\nstopped\n`);
});

test('a signal more than two seconds after the first ends it at once', async () => {
  const one = await start({ graceMs: 60_000, stopsWhenTold: true });
  one.child.kill('SIGTERM');
  await one.says('stop because of');
  // The two seconds are what is tested.
  await delay(2100);
  expect(one.child.exitCode).toBeNull();
  one.child.kill('SIGTERM');
  expect(await one.exitCode()).toBe(1);
  expect(one.output()).not.toContain('stopped');
});

test('a stop that takes longer than the grace is cut half a second after it', async () => {
  const one = await start({ graceMs: 100, stopsWhenTold: true });
  const askedMs = performance.now();
  one.child.kill('SIGTERM');
  expect(await one.exitCode()).toBe(1);
  expect(performance.now() - askedMs).toBeLessThan(600 + SLACK_MS);
  expect(one.output()).toContain('process.grace_over');
});

test('a stop that fails is logged and exits 1', async () => {
  const one = await start({ graceMs: 5000, stopFails: true });
  one.child.kill('SIGTERM');
  expect(await one.exitCode()).toBe(1);
  expect(one.output()).toContain('process.stop_failed it would not close');
});

test('a supervisor that is gone, its end of stderr with it, is a reason to drain in good order', async () => {
  const one = await start({ graceMs: 5000, stopsWhenTold: true }, [
    'ignore',
    'pipe',
    'pipe',
    'ipc',
  ]);
  await eventually(() => one.messages.length === 2, { what: 'both messages' });
  one.child.stderr?.destroy();
  one.child.disconnect();
  await one.says('stop because of supervisor_gone');
  one.child.kill('SIGUSR2');
  expect(await one.exitCode()).toBe(0);
  expect(one.output()).toContain('stop because of supervisor_gone\nstopped');
});

test('what is announced reaches the supervisor in order', async () => {
  const one = await start({ graceMs: 5000 }, ['ignore', 'pipe', 'pipe', 'ipc']);
  await eventually(() => one.messages.length === 2, { what: 'both messages' });
  expect(one.messages).toEqual([{ type: 'listening', port: 4711 }, { type: 'ready' }]);
});

test.each([
  ['thrown', 'process.uncaught_exception'],
  ['rejected', 'process.unhandled_rejection'],
] as const)('an error that is %s where nobody catches is logged and exits 1', async (bug, line) => {
  const one = await start({ graceMs: 5000, bug });
  expect(await one.exitCode()).toBe(1);
  expect(one.output()).toContain(`${line} a bug`);
});
