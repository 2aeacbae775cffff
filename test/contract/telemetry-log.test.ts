import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import { createTelemetry, type ProcessTelemetry } from '../../src/adapters/telemetry/telemetry.ts';

const opened: ProcessTelemetry[] = [];
afterEach(() => opened.splice(0).forEach((telemetry) => telemetry.close()));

const job = { jobId: 'j-1', memberId: 'ann', band: 'batch', model: 'llama' };

describe('the log', () => {
  test('has one JSON line for a fact, with its time in ISO 8601 UTC and the fields of the fact', () => {
    const { telemetry, lines } = open();
    telemetry.jobDispatched({ ...job, tier: 'pro', kind: 'text', attempt: 1, waitedMs: 12 });
    expect(lines()).toEqual([
      {
        level: 'info',
        time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        process: 'gpu',
        pid: process.pid,
        msg: 'job.dispatched',
        ...job,
        tier: 'pro',
        kind: 'text',
        attempt: 1,
        waitedMs: 12,
      },
    ]);
  });

  test('grades outcomes: failed is a warning, the others are the life of jobs', () => {
    const { telemetry, lines } = open();
    const settled = { ...job, kind: 'text', waitedMs: 1 } as const;
    telemetry.jobSettled({ ...settled, outcome: 'completed' });
    telemetry.jobSettled({ ...settled, outcome: 'failed', code: 'lease_lapsed' });
    telemetry.jobSettled({ ...settled, outcome: 'evicted', code: 'client_closed' });
    telemetry.jobHandedBack({ jobId: 'j-1', because: 'shutting_down' });
    telemetry.jobHandedBack({ jobId: 'j-1', because: 'stalled' });
    expect(lines().map((line) => line.level)).toEqual(['info', 'warn', 'info', 'info', 'warn']);
  });

  test('says once what is told again and again, and again when it changes', () => {
    const { telemetry, lines } = open();
    for (const hasAof of [false, false, true, true, false]) {
      telemetry.redisDurabilitySeen({ hasAof, mayEvict: false });
    }
    telemetry.policyCompared({ differs: true, ours: 'a', workers: 'b' });
    telemetry.policyCompared({ differs: true, ours: 'a', workers: 'b' });
    expect(lines().map((line) => [line.level, line.msg])).toEqual([
      ['error', 'redis.durability'],
      ['info', 'redis.durability'],
      ['error', 'redis.durability'],
      ['error', 'policy.compared'],
    ]);
  });

  test('leaves out what is below its level', () => {
    const { telemetry, lines } = open('warn');
    telemetry.jobAdmitted({
      ...job,
      tier: 'pro',
      kind: 'text',
      basePriority: 0,
      bodyBytes: 1,
      isAsync: true,
    });
    telemetry.jobRetried({
      ...job,
      kind: 'text',
      attempt: 1,
      ranMs: 1,
      delayMs: 1,
      code: 'lease_lapsed',
    });
    expect(lines().map((line) => line.msg)).toEqual(['job.retried']);
  });

  test('puts the fields of a child logger in each of its lines', () => {
    const { telemetry, lines } = open();
    telemetry.log.child({ jobId: 'j-7', apiKey: 'canary' }).warn({ tries: 2 }, 'upstream.slow');
    expect(lines()).toMatchObject([
      { jobId: 'j-7', tries: 2, apiKey: '[hidden]', msg: 'upstream.slow', level: 'warn' },
    ]);
  });

  test('hides credentials by the name of the field, by their shape, and inside errors', () => {
    const { telemetry, lines, raw } = open();
    const cause = new Error('connect redis://ann:canary@redis:6379 failed');
    const error = Object.assign(new Error('sent Authorization: Bearer canary', { cause }), {
      code: 'ECONNREFUSED',
      command: { name: 'set', args: ['canary'] },
    });
    telemetry.log.error(
      {
        err: error,
        authorization: 'canary',
        request: {
          headers: { cookie: 'canary' },
          'x-api-key': 'canary',
          list: [{ password: 'canary' }],
        },
        prompt: 'canary',
        url: 'https://ann:canary@models/v1',
        auth: 'Basic canary',
        maxTokens: 40,
        raw: Buffer.from('canary'),
      },
      'test.line',
    );
    expect(raw()).not.toContain('canary');
    expect(lines()).toMatchObject([
      {
        err: {
          name: 'Error',
          code: 'ECONNREFUSED',
          cause: { message: expect.stringContaining('redis:6379') },
        },
        maxTokens: 40,
        url: 'https://[hidden]@models/v1',
        raw: '[6 bytes]',
      },
    ]);
  });

  test('keeps a hostile text on one line and bounds its length and depth', () => {
    const { telemetry, lines, raw } = open();
    const ring: Record<string, unknown> = {};
    ring.ring = ring;
    telemetry.log.info(
      { model: 'a\r\n{"level":"error"}\u001b[31m', long: 'x'.repeat(1e6), ring, big: 7n },
      'x',
    );
    expect(raw().trimEnd().split('\n')).toHaveLength(1);
    expect(raw().length).toBeLessThan(3000);
    expect(raw()).not.toContain('\u001b');
    expect(lines()[0]).toMatchObject({ model: 'a\r\n{"level":"error"}\u001b[31m', big: '7' });
  });

  test('is on standard output before the process can die', async () => {
    const script = `
      import { createLogger } from './src/adapters/telemetry/logger.ts';
      const log = createLogger({ process: 'gpu', level: 'info' });
      log.info({ n: 1 }, 'first');
      log.info({ n: 2 }, 'second');
      process.kill(process.pid, 'SIGKILL');`;
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', script],
      { env: { PATH: process.env.PATH }, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    const written = await text(child.stdout);
    expect(
      written
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { n: number }).n),
    ).toEqual([1, 2]);
  });
});

function open(level: 'info' | 'warn' | 'debug' = 'info') {
  const written: string[] = [];
  const telemetry = createTelemetry({
    process: 'gpu',
    config: { ...loadConfig({}), log: { level } },
    destination: { write: (line: string) => void written.push(line) },
  });
  opened.push(telemetry);
  const raw = () => written.join('');
  const lines = () => written.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { telemetry, lines, raw };
}
