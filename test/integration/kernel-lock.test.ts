import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  acquireKernelLock,
  lockAddress,
  lockDomain,
  type KernelLock,
} from '../../src/adapters/process/kernel-lock.ts';

const held: KernelLock[] = [];

afterEach(async () => {
  await Promise.all(held.splice(0).map((lock) => lock.release()));
});

async function take(name: string, ownerLine: string, platform?: NodeJS.Platform) {
  const result = await acquireKernelLock(name, ownerLine, platform);
  if ('release' in result) held.push(result);
  return result;
}

async function startHolder(name: string, ownerLine: string) {
  const program = fileURLToPath(new URL('../support/lock-holder-process.ts', import.meta.url));
  const holder = spawn(process.execPath, ['--import', 'tsx', program, name, ownerLine], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [answer] = (await once(holder.stdout.setEncoding('utf8'), 'data')) as [string];
  return { holder, answer: answer.trim() };
}

describe.each(['linux', 'darwin'] as const)('the kernel lock as on %s', (platform) => {
  test('is held by one and names it to the next', async () => {
    const name = `test:${randomUUID()}`;
    expect(await take(name, 'the first, pid 1', platform)).toHaveProperty('release');
    expect(await take(name, 'the second', platform)).toEqual({ heldBy: 'the first, pid 1' });
  });

  test('can be taken again once it is released', async () => {
    const name = `test:${randomUUID()}`;
    const first = await acquireKernelLock(name, 'the first', platform);
    if (!('release' in first)) throw new Error(`held by ${first.heldBy}`);
    await first.release();
    await first.release();
    expect(await take(name, 'the second', platform)).toHaveProperty('release');
  });

  test('of another name is another lock', async () => {
    expect(await take(`test:${randomUUID()}`, 'one', platform)).toHaveProperty('release');
    expect(await take(`test:${randomUUID()}`, 'other', platform)).toHaveProperty('release');
  });

  test('goes to exactly one of many that ask at once', async () => {
    const name = `test:${randomUUID()}`;
    const asked = Array.from({ length: 20 }, (_, index) => take(name, `no ${index}`, platform));
    const answers = await Promise.all(asked);
    expect(answers.filter((answer) => 'release' in answer)).toHaveLength(1);
  });

  test('keeps an owner line to one line', async () => {
    const name = `test:${randomUUID()}`;
    await take(name, 'two\nlines', platform);
    expect(await take(name, 'next', platform)).toEqual({ heldBy: 'two lines' });
  });
});

test('a name of any length is told from one that differs at its end', async () => {
  const name = `test:${'x'.repeat(500)}`;
  expect(await take(`${name}1`, 'one')).toHaveProperty('release');
  expect(await take(`${name}2`, 'other')).toHaveProperty('release');
});

test('the lock of a process that is killed is free at once', async () => {
  const name = `test:${randomUUID()}`;
  const { holder, answer } = await startHolder(name, 'a process that will be killed');
  expect(answer).toBe('held');
  expect(await take(name, 'next')).toEqual({ heldBy: 'a process that will be killed' });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  expect(await take(name, 'next')).toHaveProperty('release');
});

test('a holder that is stopped still holds, though it cannot say who it is', async () => {
  const name = `test:${randomUUID()}`;
  const { holder } = await startHolder(name, 'a process that sleeps');
  holder.kill('SIGSTOP');
  expect(await take(name, 'next')).toEqual({ heldBy: 'a process that does not answer' });
  holder.kill('SIGKILL');
  await once(holder, 'exit');
});

test('a stranger on the local address is not taken for a holder', async () => {
  const name = `test:${randomUUID()}`;
  const stranger = createServer((caller) => caller.end('220 mail\r\n'));
  stranger.listen(lockAddress(name, 'darwin'));
  await once(stranger, 'listening');
  const answer = await take(name, 'next', 'darwin');
  stranger.close();
  expect(answer).toEqual({ heldBy: 'another program that uses the same local address' });
});

test('the lock domain is the same for two processes of this kernel and namespace', () => {
  expect(lockDomain()).toBe(lockDomain());
  expect(lockDomain('linux')).toMatch(/^linux:[0-9a-f-]{36}:net:\[\d+\]$/);
  expect(lockDomain('darwin')).toMatch(/^host:./);
});
