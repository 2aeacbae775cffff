import { describe, expect, test } from '@jest/globals';
import { defaultRules } from '../../src/policy/rules.ts';
import { Random } from '../../src/simulate/random.ts';
import { reportOf } from '../../src/simulate/report.ts';
import { simulate } from '../../src/simulate/run.ts';
import { scenarios } from '../../src/simulate/scenarios.ts';
import { withSettings } from '../../src/simulate/settings.ts';
import { timelineOf } from '../../src/simulate/timeline.ts';
import { readTrace } from '../../src/simulate/trace.ts';

const trace = [
  '{"at": 100, "seconds": 60, "member": "film", "priority": -100, "model": "video"}',
  '',
  '{"at": 100.5, "seconds": 20, "member": "<chat>", "tier": "pro", "priority": 100, "model": "chat"}',
  '{"at": 101, "seconds": 5}',
].join('\n');

describe('a trace', () => {
  test('starts at its first job and fills in what is left out', () => {
    expect(readTrace(trace, 30_000)).toEqual({
      arrivals: [
        { atMs: 0, runMs: 60_000, base: -100, member: 'film', tier: 'free', model: 'video' },
        { atMs: 500, runMs: 20_000, base: 100, member: '<chat>', tier: 'pro', model: 'chat' },
        { atMs: 1000, runMs: 5000, base: 0, member: 'shared', tier: 'free', model: 'model' },
      ],
      chains: [],
      swapMs: 30_000,
    });
  });

  test.each([
    ['nonsense', 'line 1 of the trace is no JSON object'],
    ['{"at": 1, "seconds": 2}\n7', 'line 2 of the trace is no JSON object'],
    ['{"at": 1}', 'line 1 of the trace: seconds must be a number'],
    ['{"at": -1, "seconds": 2}', 'line 1 of the trace: at must be a number'],
    ['{"at": 1, "seconds": 2, "member": 7}', 'line 1 of the trace: member must be a string'],
    ['{"at": 1, "seconds": 2, "priority": 0.5}', 'line 1 of the trace: priority must be a whole'],
    ['{"at": 1, "seconds": 2, "priority": 10001}', 'line 1 of the trace: priority must be a whole'],
    ['\n{"at": 1, "seconds": 2, "priorty": 1}', 'line 2 of the trace: priorty is not known'],
    ['[1]', 'line 1 of the trace is no JSON object'],
    [' \n', 'the trace holds no job'],
  ])('with %j is refused by its line', (text, message) => {
    expect(() => readTrace(text, 0)).toThrow(message);
  });
});

describe('settings', () => {
  test('replace single values of the rules and leave the rest', () => {
    const rules = withSettings(defaultRules, 'aging.clock=job,affinity.bonus=5');
    expect(rules).toEqual({
      ...defaultRules,
      affinity: { bonus: 5 },
      aging: { ...defaultRules.aging, clock: 'job' },
    });
    expect(withSettings(defaultRules, '')).toEqual(defaultRules);
  });

  test.each([
    ['aging.clok=job', 'aging.clok is not in the rules'],
    ['affinity.bonus.more=1', 'affinity.bonus.more is not in the rules'],
    ['aging.hold=1', 'aging.hold is no single value of the rules'],
    ['aging.charge=', 'aging.charge is : a number is needed'],
    ['aging.charge=much', 'aging.charge is much: a number is needed'],
    ['aging.charge=2', 'it must be above 3, the number of bands'],
    ['aging.clock=days', 'aging.clock is days: band or job is needed'],
  ])('%s are refused', (settings, message) => {
    expect(() => withSettings(defaultRules, settings)).toThrow(message);
  });
});

describe('the report', () => {
  const simulation = simulate(readTrace(trace, 30_000), defaultRules);
  const other = simulate(readTrace(trace, 0), defaultRules);

  test('shows waits, GPU time and shares of bands and members', () => {
    expect(reportOf([{ name: 'here', simulation }], defaultRules).split('\n')).toEqual([
      'waits, the last end and GPU time in minutes; share of the time the GPU was busy',
      '',
      '                    jobs  p50  p95  max  last  GPU  share',
      'interactive <chat>     1  1.5  1.5  1.5     2    1  0.286',
      'normal shared          1  2.3  2.3  2.3     3    1  0.200',
      'batch film             1  0.0  0.0  0.0     2    2  0.514',
      '',
      'here: 3 swaps (2 min), 100.0 % busy of 3 min, held for 0.0 s, 0 still waiting',
    ]);
  });

  test('shows two configurations side by side', () => {
    const both = reportOf(
      [
        { name: 'a', simulation },
        { name: 'b', simulation: other },
      ],
      defaultRules,
    );
    expect(both).toContain('left: a; right: b');
    expect(both).toMatch(/batch film +1 +0\.0 .* 0\.514 +1 +0\.0 .* 0\.706/);
  });

  test('draws a bar for each run and one for each swap, names escaped', () => {
    const svg = timelineOf([{ name: 'here', simulation }], defaultRules);
    expect(svg.match(/<rect x=/g)).toHaveLength(6);
    expect(svg).toContain('&lt;chat>');
    expect(svg).not.toContain('<chat>');
  });
});

test('every built-in scenario keeps the GPU busy while something waits, but for the hold', () => {
  for (const scenario of scenarios) {
    const { ran, heldMs } = simulate(scenario.workload(new Random(1)), defaultRules);
    let freeMs = 0;
    let idleMs = 0;
    for (const run of ran) {
      idleMs += Math.max(0, run.startMs - Math.max(freeMs, run.job.arrivalMs));
      freeMs = run.endMs;
    }
    expect(idleMs).toBeLessThanOrEqual(heldMs);
    const busyMs = ran.reduce((sum, run) => sum + run.endMs - run.startMs, 0);
    expect(heldMs).toBeLessThanOrEqual(0.02 * busyMs);
  }
});
