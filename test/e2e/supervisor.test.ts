import { once } from 'node:events';
import { readdirSync, symlinkSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { redisCommand } from '../../src/supervise/redis-command.ts';
import { compileProcess } from '../support/compiled-process.ts';
import { eventually } from '../support/eventually.ts';
import type { Behaviour } from '../support/supervised-process.ts';
import type { SupervisorOrder } from '../support/supervisor-process.ts';
import {
  isRunning,
  recordedProcesses,
  startSupervisor,
  type TestSupervisor,
} from '../support/supervisor.ts';

/** What a busy machine may add to a promised time. */
const SLACK_MS = 1000;
const INGRESS: Behaviour = { name: 'ingress', listens: true };

let supervisorProgram = '';
let childProgram = '';
let dataDir = '';
let started: TestSupervisor[] = [];

beforeAll(async () => {
  supervisorProgram = await compileProcess('supervisor-process.ts');
  childProgram = await compileProcess('supervised-process.ts');
});

afterAll(async () => {
  for (const program of [supervisorProgram, childProgram]) {
    await rm(path.dirname(program), { recursive: true, force: true });
  }
});

beforeEach(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'berth-data-'));
});

afterEach(async () => {
  for (const { pid } of started) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  for (const pid of Object.values(recordedProcesses(dataDir))) {
    if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  }
  started = [];
  await rm(dataDir, { recursive: true, force: true });
});

interface StartOptions {
  /** Default: none; nothing of these tests' children needs one. */
  readonly redis?: 'embedded';
  readonly env?: Readonly<Record<string, string>>;
  readonly dir?: string;
}

function start(children: readonly Behaviour[], options: StartOptions = {}): TestSupervisor {
  const order: SupervisorOrder = { program: childProgram, children };
  const supervisor = startSupervisor(
    options.dir ?? dataDir,
    [supervisorProgram, JSON.stringify(order)],
    {
      PORT: '0',
      MODEL_SERVER_URL: 'http://127.0.0.1:9292',
      ...(options.redis === 'embedded' ? {} : { REDIS_URL: 'redis://127.0.0.1:1' }),
      ...options.env,
    },
  );
  started.push(supervisor);
  return supervisor;
}

/** The pids of all that runs, to be looked for afterwards. */
async function ready(supervisor: TestSupervisor): Promise<Record<string, number>> {
  await supervisor.says('berth ready on http://127.0.0.1:');
  return supervisor.running();
}

function expectNothingLeft(pids: Record<string, number>): void {
  expect(Object.entries(pids).filter(([, pid]) => isRunning(pid))).toEqual([]);
  expect(readdirSync(dataDir).filter((name) => name !== 'redis')).toEqual([]);
}

describe('a process that dies', () => {
  test('is started again, and the operator is told in one line', async () => {
    const supervisor = start([INGRESS, { name: 'gpu' }]);
    const before = await ready(supervisor);
    process.kill(before.gpu!, 'SIGKILL');
    const again = await eventually(
      () => {
        const { gpu } = supervisor.running();
        return gpu === before.gpu || gpu === undefined ? null : gpu;
      },
      { what: 'another gpu process' },
    );
    expect(isRunning(again)).toBe(true);
    expect(supervisor.running().ingress).toBe(before.ingress);
    expect(supervisor.complaints()).toEqual([
      'berth: gpu ended (SIGKILL), starting it again in 0.1 s',
    ]);
  });

  test('gets the port again that was free when it came first', async () => {
    const supervisor = start([INGRESS]);
    const before = await ready(supervisor);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(supervisor.output())![0];
    expect(await (await fetch(url)).text()).toBe('here');
    process.kill(before.ingress!, 'SIGKILL');
    await eventually(async () => (await fetch(url)).ok, { what: 'the ingress on its old port' });
    expect(supervisor.running().ingress).not.toBe(before.ingress);
  });

  test('five times within a minute ends everything, with its last lines', async () => {
    const supervisor = start(
      [INGRESS, { name: 'gpu', exitCode: 7, complaint: 'the reason is this' }],
      { redis: 'embedded' },
    );
    await supervisor.says('gpu started');
    const pids = supervisor.running();
    expect((await supervisor.ended()).how).toBe(1);
    expect(supervisor.complaints()).toEqual([
      'berth: gpu ended (exit code 7), starting it again in 0.1 s',
      'berth: gpu ended (exit code 7), starting it again in 0.2 s',
      'berth: gpu ended (exit code 7), starting it again in 0.4 s',
      'berth: gpu ended (exit code 7), starting it again in 0.8 s',
      'berth: gpu died 5 times within a minute, giving up; its last lines:',
      ...Array.from({ length: 5 }, () => 'berth:   the reason is this'),
    ]);
    expect(supervisor.output()).toContain('ingress drained');
    expectNothingLeft(pids);
  });

  test('of a configuration fault is not started again, and what it said is all that is said', async () => {
    const complaint = 'berth: configuration: PORT will not do';
    const fault = { name: 'ingress', isNeverReady: true, exitCode: 2, complaint };
    const supervisor = start([fault, { name: 'gpu' }]);
    expect((await supervisor.ended()).how).toBe(1);
    expect(supervisor.complaints()).toEqual([complaint]);
    expect(supervisor.output().match(/ingress started/g)).toHaveLength(1);
    expectNothingLeft({});
  });

  test('Redis too: it comes back on the same socket with what it had', async () => {
    const supervisor = start([INGRESS], { redis: 'embedded' });
    const before = await ready(supervisor);
    const socket = path.join(dataDir, 'redis.sock');
    await redisCommand(socket, ['SET', 'kept', 'yes'], 1000);
    process.kill(before.redis!, 'SIGKILL');
    await eventually(async () => (await redisCommand(socket, ['GET', 'kept'], 500)) === 'yes', {
      what: 'the value in the new Redis',
    });
    expect(isRunning(before.ingress!)).toBe(true);
    expect(supervisor.running().redis).not.toBe(before.redis);
  });
});

describe('an ordered stop', () => {
  test('lets processes drain over a Redis that still runs, and leaves nothing behind', async () => {
    const supervisor = start([INGRESS, { name: 'gpu', drainsUntilTold: true }], {
      redis: 'embedded',
    });
    const pids = await ready(supervisor);
    supervisor.signal('SIGTERM');
    await supervisor.says('gpu stopping');
    expect(await redisCommand(path.join(dataDir, 'redis.sock'), ['PING'], 5000)).toBe('PONG');
    process.kill(pids.gpu!, 'SIGUSR2');
    expect((await supervisor.ended()).how).toBe(0);
    expect(supervisor.output()).toContain('gpu drained');
    expectNothingLeft(pids);
  });

  test('is over at most a second after the grace, whatever hangs', async () => {
    const deaf = { name: 'gpu', ignoresSignals: true };
    const env = { SHUTDOWN_GRACE_SECONDS: '0.5' };
    const supervisor = start([INGRESS, deaf], { redis: 'embedded', env });
    const pids = await ready(supervisor);
    process.kill(pids.redis!, 'SIGSTOP');
    supervisor.signal('SIGTERM');
    const { how, afterMs } = await supervisor.ended();
    expect(how).toBe(0);
    expect(afterMs).toBeGreaterThan(750);
    expect(afterMs).toBeLessThan(1500 + SLACK_MS);
    expectNothingLeft(pids);
  });

  test('of a whole process group reaches Redis last', async () => {
    const supervisor = start([INGRESS, { name: 'gpu', drainsUntilTold: true }], {
      redis: 'embedded',
    });
    const pids = await ready(supervisor);
    process.kill(-supervisor.pid, 'SIGINT');
    await supervisor.says('gpu stopping');
    expect(await redisCommand(path.join(dataDir, 'redis.sock'), ['PING'], 5000)).toBe('PONG');
    process.kill(pids.gpu!, 'SIGUSR2');
    expect((await supervisor.ended()).how).toBe(0);
    expect(supervisor.output()).toContain('gpu drained');
    expectNothingLeft(pids);
  });

  test('asked for twice within two seconds is one', async () => {
    const supervisor = start([INGRESS, { name: 'gpu', drainsUntilTold: true }]);
    const pids = await ready(supervisor);
    supervisor.signal('SIGINT');
    await supervisor.says('gpu stopping');
    supervisor.signal('SIGINT');
    process.kill(pids.gpu!, 'SIGUSR2');
    expect((await supervisor.ended()).how).toBe(0);
    expect(supervisor.output()).toContain('gpu drained');
    expectNothingLeft(pids);
  });

  test('asked for again after more than two seconds is forced', async () => {
    const env = { SHUTDOWN_GRACE_SECONDS: '60' };
    const supervisor = start([INGRESS, { name: 'gpu', drainsUntilTold: true }], {
      redis: 'embedded',
      env,
    });
    const pids = await ready(supervisor);
    supervisor.signal('SIGTERM');
    await supervisor.says('gpu stopping');
    // The two seconds are what is tested.
    await delay(2100);
    expect(isRunning(pids.gpu!)).toBe(true);
    supervisor.signal('SIGTERM');
    const { how, afterMs } = await supervisor.ended();
    expect(how).toBe(1);
    expect(afterMs).toBeLessThan(1000 + SLACK_MS);
    expectNothingLeft(pids);
  });

  test('in the middle of a start ends that start', async () => {
    const supervisor = start([{ name: 'gpu', isNeverReady: true }], { redis: 'embedded' });
    await supervisor.says('gpu started');
    const pids = supervisor.running();
    supervisor.signal('SIGTERM');
    expect((await supervisor.ended()).how).toBe(0);
    expect(supervisor.output()).not.toContain('berth ready');
    expectNothingLeft(pids);
  });
});

describe('a start is refused', () => {
  test('when a live supervisor uses the DATA_DIR, by whatever name', async () => {
    const first = start([INGRESS]);
    const pids = await ready(first);
    const otherName = `${dataDir}-link`;
    symlinkSync(dataDir, otherName);
    const second = start([INGRESS], { dir: otherName });
    const { how } = await second.ended();
    await rm(otherName);
    expect(how).toBe(1);
    expect(second.output()).toBe(
      `berth: DATA_DIR ${dataDir} is in use by the berth supervisor with pid ${first.pid}\n`,
    );
    expect(Object.values(pids).every(isRunning)).toBe(true);
  });

  test('when the port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    const supervisor = start([INGRESS], { redis: 'embedded', env: { PORT: String(port) } });
    const { how } = await supervisor.ended();
    other.close();
    expect(how).toBe(1);
    expect(supervisor.output()).toBe(
      `berth: port ${port} on 127.0.0.1 is in use by another program; stop that, or set PORT\n`,
    );
    expectNothingLeft({});
  });

  test('when there is no redis-server to run', async () => {
    const supervisor = start([INGRESS], { redis: 'embedded', env: { PATH: '/nowhere' } });
    expect((await supervisor.ended()).how).toBe(1);
    expect(supervisor.output()).toMatch(/^berth: redis cannot be started: .*ENOENT.*\n$/);
    expectNothingLeft({});
  });

  test('when the DATA_DIR cannot be made', async () => {
    const file = path.join(dataDir, 'file');
    await writeFile(file, '');
    const supervisor = start([INGRESS], { dir: path.join(file, 'data') });
    expect((await supervisor.ended()).how).toBe(1);
    expect(supervisor.output()).toMatch(/^berth: DATA_DIR \S+ cannot be used: ENOTDIR.*\n$/);
  });
});

describe('after a supervisor was killed', () => {
  test('its processes drain by themselves, and the next one ends its Redis and has its data', async () => {
    const first = start([INGRESS, { name: 'gpu', drainsUntilTold: true }], { redis: 'embedded' });
    const before = await ready(first);
    const socket = path.join(dataDir, 'redis.sock');
    await redisCommand(socket, ['SET', 'kept', 'yes'], 1000);
    first.signal('SIGKILL');
    await first.says('gpu stopping');
    expect(isRunning(before.redis!)).toBe(true);
    const second = start([INGRESS], { redis: 'embedded' });
    await second.says('waiting for its processes to end');
    process.kill(before.gpu!, 'SIGUSR2');
    const now = await ready(second);
    expect(first.output()).toContain('gpu drained');
    expect(Object.values(before).filter(isRunning)).toEqual([]);
    expect(await redisCommand(socket, ['GET', 'kept'], 1000)).toBe('yes');
    expect(second.complaints()).toEqual([
      'berth: the run before was killed; waiting for its processes to end',
      `berth: stopping the redis-server (pid ${before.redis!}) of the run before`,
    ]);
    second.signal('SIGTERM');
    expect((await second.ended()).how).toBe(0);
    expectNothingLeft(now);
  });

  test('a process of its that never ends is ended by the next one', async () => {
    const env = { SHUTDOWN_GRACE_SECONDS: '0' };
    const first = start([{ name: 'gpu', ignoresSignals: true }], { env });
    const before = await ready(first);
    first.signal('SIGKILL');
    const second = start([INGRESS], { env });
    await ready(second);
    expect(isRunning(before.gpu!)).toBe(false);
  });

  test('a Redis without a record of its run is known by its pid file and its own word', async () => {
    const first = start([INGRESS], { redis: 'embedded' });
    const before = await ready(first);
    first.signal('SIGKILL');
    await eventually(() => !isRunning(before.ingress!), { what: 'the ingress to end' });
    await rm(path.join(dataDir, 'run.json'));
    const second = start([INGRESS], { redis: 'embedded' });
    const now = await ready(second);
    expect(isRunning(before.redis!)).toBe(false);
    second.signal('SIGTERM');
    expect((await second.ended()).how).toBe(0);
    expectNothingLeft({ ...before, ...now });
  });
});

test('a DATA_DIR with a long path has its socket under the temp dir, for that run alone', async () => {
  const deep = path.join(dataDir, 'd'.repeat(90));
  await mkdir(deep);
  const temp = await mkdtemp(path.join(tmpdir(), 'berth-temp-'));
  const supervisor = start([INGRESS], { redis: 'embedded', dir: deep, env: { TMPDIR: temp } });
  await supervisor.says('berth ready');
  const [folder] = readdirSync(temp);
  expect(await redisCommand(path.join(temp, folder!, 'redis.sock'), ['PING'], 500)).toBe('PONG');
  supervisor.signal('SIGTERM');
  expect((await supervisor.ended()).how).toBe(0);
  expect(readdirSync(temp)).toEqual([]);
  expect(readdirSync(deep)).toEqual(['redis']);
  await rm(temp, { recursive: true });
});
