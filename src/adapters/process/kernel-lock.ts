import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { type Server, type Socket, connect, createServer } from 'node:net';
import { hostname } from 'node:os';

/** What a second comer is told when the holder does not say who it is in time (milliseconds). */
const ANSWER_WITHIN_MS = 500;
/** How often a name is tried again whose holder vanished between two looks. */
const ATTEMPTS = 5;
const LONGEST_OWNER_LINE = 500;
/** Of an abstract socket, in bytes. */
const LONGEST_NAME = 107;

/** A held lock. The kernel frees it when the process ends, however it ends. */
export interface KernelLock {
  /** Gives the name back. Safe to call twice. */
  release(): Promise<void>;
}

/**
 * Takes the lock of this name, or says who has it. Never waits for the holder, never breaks a lock.
 *
 * On Linux the lock is an abstract unix socket: it has no file that could be left behind, be deleted
 * by somebody or carry a time stamp, and it is seen by every process of the same network namespace
 * (see {@link lockDomain}). Elsewhere it is a loopback port derived from the name.
 *
 * The lock does not keep the process alive. Processes started by the holder do not inherit it.
 *
 * @param name names the thing that is owned, e.g. `gpu:http://127.0.0.1:9292`; any length.
 * @param ownerLine one line that names the holder to whoever is refused; cut at 500 characters.
 * @param platform whose kind of lock to use; tests alone pass it.
 * @throws the system's error when neither holding nor asking works (no permission, no sockets left).
 */
export async function acquireKernelLock(
  name: string,
  ownerLine: string,
  platform: NodeJS.Platform = process.platform,
): Promise<KernelLock | { heldBy: string }> {
  const digest = digestOf(name);
  const address = lockAddress(name, platform);
  const greeting = `${digest} ${ownerLine.replaceAll(/\s+/g, ' ').slice(0, LONGEST_OWNER_LINE)}\n`;
  for (let attempt = 1; ; attempt += 1) {
    const held = await listen(address, greeting);
    if (held !== undefined) return held;
    const answer = await ask(address);
    // No answer because nobody listens any more: the holder has just gone, so the name is free.
    if (answer === undefined && attempt < ATTEMPTS) continue;
    return { heldBy: holderFrom(answer, digest) };
  }
}

/**
 * Names the realm in which two processes see each other's kernel locks: this boot of this kernel and
 * the network namespace on Linux, the host name elsewhere. Two processes with different domains (two
 * hosts, two containers) cannot exclude each other by {@link acquireKernelLock}.
 */
export function lockDomain(platform: NodeJS.Platform = process.platform): string {
  if (platform !== 'linux') return `host:${hostname()}`;
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `linux:${boot}:${readlinkSync('/proc/self/ns/net')}`;
  } catch {
    return `host:${hostname()}`;
  }
}

/** Where a lock lives. */
export type LockAddress = { path: string } | { host: string; port: number };

/** The local address that holding the lock of this name means to listen on. */
export function lockAddress(name: string, platform: NodeJS.Platform): LockAddress {
  const digest = digestOf(name);
  // As long as such a name can be: Node 20 fills a shorter one up with NULs, later ones do not.
  if (platform === 'linux') return { path: `\0${`berth-${digest}`.padEnd(LONGEST_NAME, '-')}` };
  // Below the range systems hand out to outgoing connections.
  return { host: '127.0.0.1', port: 20_000 + (Number.parseInt(digest.slice(0, 8), 16) % 12_000) };
}

/** The lock, a listening server, or undefined when the name is taken. */
function listen(address: LockAddress, greeting: string): Promise<KernelLock | undefined> {
  return new Promise((resolve, reject) => {
    const callers = new Set<Socket>();
    const server = createServer((caller) => {
      callers.add(caller);
      caller.on('close', () => callers.delete(caller));
      caller.on('error', () => caller.destroy());
      caller.end(greeting);
      caller.unref();
    });
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen({ ...address, exclusive: true }, () => {
      server.unref();
      resolve({ release: () => close(server, callers) });
    });
  });
}

/** What the holder says; empty when it is silent, undefined when there is no holder any more. */
function ask(address: LockAddress): Promise<string | undefined> {
  return new Promise((resolve) => {
    let heard = '';
    const caller: Socket = connect(address);
    const settle = (answer: string | undefined): void => {
      clearTimeout(timer);
      caller.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => settle(heard), ANSWER_WITHIN_MS);
    caller.setEncoding('utf8');
    caller.on('data', (piece: string) => {
      heard += piece;
      if (heard.includes('\n') || heard.length > 2 * LONGEST_OWNER_LINE) settle(heard);
    });
    caller.on('end', () => settle(heard));
    caller.on('error', () => settle(heard === '' ? undefined : heard));
  });
}

function digestOf(name: string): string {
  return createHash('sha256').update(name).digest('hex');
}

function holderFrom(answer: string | undefined, digest: string): string {
  const line = answer?.split('\n', 1)[0] ?? '';
  if (line.startsWith(`${digest} `)) return line.slice(digest.length + 1);
  if (line === '') return 'a process that does not answer';
  return 'another program that uses the same local address';
}

function close(server: Server, callers: Iterable<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const caller of callers) caller.destroy();
  });
}
