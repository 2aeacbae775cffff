import { describe, expect, test } from '@jest/globals';
import { durationText, etaText } from '../../src/gateway/duration-text.ts';
import { jobFraction, jobLine, sizeText } from '../../src/cli/job-news.ts';
import type { JobNews } from '../../src/cli/job-news.ts';
import { ProgressLine } from '../../src/cli/progress-line.ts';
import { explainText } from '../../src/cli/explain-text.ts';
import { queueTable } from '../../src/cli/queue-table.ts';
import { retryAfterSeconds } from '../../src/cli/retry-after.ts';
import { shotName } from '../../src/cli/shot-name.ts';
import { textTable } from '../../src/cli/text-table.ts';
import type { JobObject } from '../../src/gateway/job-object.ts';
import type { Explanation } from '../../src/gateway/explanation.ts';
import type { QueueView, ShownWait } from '../../src/gateway/queue-view.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';

const job = {
  id: '0f8b6c1e-3c1d-4b1e-9a57-2d9f0c6e7a41',
  started_at: 1000,
  error: null,
  metrics: { queue_seconds: 2, swap_seconds: null, gpu_seconds: 61 },
} as unknown as JobObject;
const news = (rest: Partial<JobNews>): JobNews => ({
  state: 'running',
  position: null,
  eta: null,
  bytes: 0,
  atMs: 1_010_000,
  job,
  ...rest,
});

test.each([
  [0, '0 s'],
  [59.4, '59 s'],
  [61, '1 min 1 s'],
  [599, '9 min 59 s'],
  [3540, '59 min'],
  [12_000, '3 h 20 min'],
  [93_600, '1 d 2 h'],
  [-3, '0 s'],
])('%d seconds read %s', (seconds, text) => {
  expect(durationText(seconds)).toBe(text);
});

test('a range of seconds is one duration when both ends read alike, and unknown without one', () => {
  expect(etaText({ p50: 120, p90: 300 })).toBe('2 min to 5 min');
  expect(etaText({ p50: 12.1, p90: 12.2 })).toBe('12 s');
  expect(etaText(null)).toBe('unknown');
});

test('bytes read in the unit that leaves one to three digits', () => {
  expect([0, 999, 1000, 12_345, 999_600, 4_000_000_000].map(sizeText)).toEqual([
    '0 B',
    '999 B',
    '1.0 kB',
    '12 kB',
    '1.0 MB',
    '4.0 GB',
  ]);
});

test('a job’s line says its place, what has come and when it is done, at the end why and how long', () => {
  const eta = { p50: 60, p90: 120 };
  expect(jobLine(news({ state: 'waiting', position: 3, eta }))).toBe(
    'waiting, position 3, done in 1 min to 2 min',
  );
  expect(jobLine(news({ bytes: 2048, eta }))).toBe(
    'running, 2.0 kB so far, done in 1 min to 2 min',
  );
  expect(jobLine(news({ state: 'completed' }))).toBe(
    'completed; 2 s in the queue, 1 min 1 s on the GPU',
  );
  const error = { code: 'lease_lapsed', message: 'it made no progress' };
  expect(jobLine(news({ state: 'failed', job: { ...job, error } }))).toMatch(
    /^failed: it made no progress \(lease_lapsed\);/,
  );
});

test('a bar grows with the run and its estimate, is full at the end alone and empty before', () => {
  const eta = { p50: 30, p90: 60 };
  expect(jobFraction(news({ eta }), 1_010_000)).toBe(0.25);
  expect(jobFraction(news({ eta }), 1_020_000)).toBe(0.5);
  expect(jobFraction(news({ eta }), 9_000_000)).toBe(0.99);
  expect(jobFraction(news({ state: 'waiting', eta }), 1_020_000)).toBe(0);
  expect(jobFraction(news({}), 1_020_000)).toBe(0);
  expect(jobFraction(news({ state: 'completed' }), 0)).toBe(1);
});

test('a progress line draws on a terminal and leaves the last state there', () => {
  const terminal = new FakeTerminal(true);
  let fraction = 0.2;
  const line = new ProgressLine(terminal.out, () => ({ fraction, before: 'film', after: '1/5' }));
  line.draw();
  fraction = 1;
  line.stop();
  expect(terminal.output).toContain('film ######........................ 20 % 1/5');
  expect(terminal.output).toContain('film ############################## 100 % 1/5');
});

describe('tables', () => {
  test('columns are as wide as their widest cell, and no cell steers the terminal', () => {
    expect(
      textTable(
        ['A', 'B'],
        [
          ['long cell', 'x'],
          ['\u001b[2Jy\nz', ''],
        ],
      ),
    ).toBe('A          B\nlong cell  x\n[2Jy z\n');
  });

  const waiting = (position: number): ShownWait => ({
    ...{ id: `job ${position}`, member: 'ann', model: 'flux', tier: 'pro', band: 'batch' },
    ...{ base_priority: -100, state: 'waiting', position, turn_seconds: 0, in_backoff: false },
    score: { band: -100, tier: 1, affinity: 0, aging: 0.26, effective: -98.74 },
    waited_seconds: 75,
    starts_in_seconds: { p50: 1, p90: 2 },
    eta_seconds: { p50: 60, p90: 60 },
  });
  const view = (rest: Partial<QueueView>): QueueView => ({
    ...{ as_of: 0, version: '0-0', resident_model: null },
    ...{ running: null, waiting_total: 0, waiting: [] },
    ...rest,
  });

  test('the queue shows who runs, then the plan, and dashes for what is not to be seen', () => {
    const run = { ...waiting(0), id: null, member: null, model: null };
    const text = queueTable(
      view({
        running: { ...run, state: 'running', started_at: 0, running_seconds: 3 },
        waiting_total: 1,
        waiting: [waiting(1)],
      }),
    );
    const [head, first, second] = text.split('\n').map((line) => line.trim().split(/ {2,}/));
    expect(head).toEqual('JOB,MEMBER,MODEL,BAND,TIER,POINTS,WAITED,DONE IN'.split(','));
    expect(first).toEqual(['runs', '-', '-', '-', 'batch', 'pro', '1 min']);
    expect(second).toEqual([
      '1',
      'job 1',
      'ann',
      'flux',
      'batch',
      'pro',
      '-98.7',
      '1 min 15 s',
      '1 min',
    ]);
  });

  test('a long queue is cut and counted, an empty one says so', () => {
    const many = Array.from({ length: 60 }, (_, index) => waiting(index + 1));
    expect(queueTable(view({ waiting_total: 60, waiting: many }))).toMatch(/and 10 more\n$/);
    expect(queueTable(view({}))).toBe('nothing runs and nothing waits\n');
  });
});

describe('an explanation', () => {
  const explanation: Explanation = {
    ...{ id: 'x', object: 'explanation', state: 'waiting', as_of: 200_000, summary: 'It waits.' },
    score: { band: 0, tier: 1, affinity: 10, aging: 0.26, effective: 11.26 },
    clock: null,
    ...{ position: 2, eta: null, ahead_total: 1, wait_seconds: 75, totals: {} },
    ahead: [{ job: "another member's job", because: 'higher_band', seconds: 20 }],
    timeline: [
      { from: 100_000, to: 199_940, seconds: 99_940, because: 'paused', runs: 0 },
      { from: 199_940, to: 200_000, seconds: 60, because: 'fair_turn', runs: 3 },
    ],
  };

  test('is its sentences, the terms, who is ahead and what the wait was made of', () => {
    expect(explainText(explanation).split('\n')).toEqual([
      'It waits.',
      '',
      '0 base + 1 tier + 10 affinity + 0.3 aging = 11.3 points',
      '',
      'AHEAD                 BECAUSE      TAKES',
      "another member's job  higher band  20 s",
      '',
      'FROM                 WAITED   BECAUSE    RUNS',
      '1970-01-02 03:46:40  1 d 3 h  paused',
      '07:32:20             1 min    fair turn  3',
      '',
    ]);
  });

  test('of a job that was served at once is one line; a long one is cut and counted', () => {
    const none = { score: null, ahead: [], timeline: [] };
    expect(explainText({ ...explanation, ...none })).toBe('It waits.\n');
    const long = explainText({
      ...explanation,
      ahead: Array.from({ length: 100 }, () => explanation.ahead[0]!),
      ahead_total: 150,
      timeline: Array.from({ length: 25 }, () => explanation.timeline[1]!),
    });
    expect(long).toContain('\nand 130 more\n');
    expect(long).toMatch(/\nand 5 more\n$/);
  });
});

test('a shot’s file has its number and the suffix of its type', () => {
  expect(shotName(1, 5, 'image/png')).toBe('0001.png');
  expect(shotName(12, 12_345, 'Application/JSON; charset=utf-8')).toBe('00012.json');
  expect(shotName(3, 5, 'audio/mpeg')).toBe('0003.mp3');
  expect(shotName(3, 5, 'image/jpeg')).toMatch(/^0003\.jpe?g$/);
  expect(shotName(3, 5, 'no/such-type')).toBe('0003.bin');
  expect(shotName(3, 5, '')).toBe('0003.bin');
});

test('Retry-After counts for 429 and 503, in seconds or as a date, up to two minutes', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  expect(retryAfterSeconds(429, '7', now)).toBe(7);
  expect(retryAfterSeconds(503, 'Thu, 01 Jan 2026 00:00:30 GMT', now)).toBe(30);
  expect(retryAfterSeconds(503, '0', now)).toBe(1);
  expect(retryAfterSeconds(503, '3600', now)).toBeUndefined();
  expect(retryAfterSeconds(503, 'soon', now)).toBeUndefined();
  expect(retryAfterSeconds(404, '2', now)).toBeUndefined();
  expect(retryAfterSeconds(429, undefined, now)).toBeUndefined();
});
