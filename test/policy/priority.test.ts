import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { nearestBand } from '../../src/policy/band.ts';
import { basePriority, type PriorityInput } from '../../src/policy/priority.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { rulesWith } from '../support/builders.ts';

const base = (input: PriorityInput): number => basePriority(input, defaultRules).base;
const noticed = (input: PriorityInput): readonly string[] =>
  basePriority(input, defaultRules).notices;

describe('X-LlamaSwap-Priority', () => {
  test.each([
    ['100', 100],
    ['+100', 100],
    ['-98', -98],
    ['0', 0],
    ['-0', 0],
    ['  42\t', 42],
    ['007', 7],
    ['interactive', 100],
    ['Normal', 0],
    [' BATCH ', -100],
  ])('%j is %i points', (value, points) => {
    expect(basePriority({ llamaSwapPriority: [value] }, defaultRules)).toEqual({
      base: points,
      band: nearestBand(points, defaultRules),
      notices: [],
    });
  });

  test.each([
    '1e2',
    '0x64',
    '100.5',
    '',
    '   ',
    '١٠',
    '１００',
    '+',
    '--5',
    '1 000',
    '1,2',
    'urgent',
    'constructor',
    '__proto__',
    '\u00a05',
    '5\n6',
  ])('%j cannot be read: 0, and counted', (value) => {
    expect(basePriority({ llamaSwapPriority: [value], keyDefault: 50 }, defaultRules)).toEqual({
      base: 0,
      band: 'normal',
      notices: ['llama_swap_priority_unreadable'],
    });
  });

  test('cannot be read when it came twice, even with one value', () => {
    expect(noticed({ llamaSwapPriority: ['5', '5'] })).toEqual(['llama_swap_priority_unreadable']);
  });

  test('goes before X-Priority, which goes before the intent, which goes before the key', () => {
    const all = {
      llamaSwapPriority: ['7'],
      xPriority: ['1'],
      intent: ['film-shot'],
      keyDefault: 33,
    };
    expect(base(all)).toBe(7);
    expect(base({ ...all, llamaSwapPriority: [] })).toBe(10);
    expect(base({ intent: ['film-shot'], keyDefault: 33 })).toBe(-100);
    expect(base({ keyDefault: 33 })).toBe(33);
    expect(base({})).toBe(0);
  });

  test('that cannot be read does not fall through to X-Priority', () => {
    expect(base({ llamaSwapPriority: ['soon'], xPriority: ['10'] })).toBe(0);
  });

  test('of any whole number is taken as it is', () => {
    fc.assert(
      fc.property(fc.integer({ min: -10_000, max: 10_000 }), (points) => {
        expect(base({ llamaSwapPriority: [String(points)] })).toBe(points + 0);
      }),
    );
  });

  test('never makes a request fail, whatever it holds', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' })), fc.array(fc.string()), (one, other) => {
        const got = basePriority(
          { llamaSwapPriority: one, xPriority: other, intent: other },
          defaultRules,
        );
        expect(Number.isInteger(got.base)).toBe(true);
        expect(Math.abs(got.base)).toBeLessThanOrEqual(10_000);
        expect(Object.keys(defaultRules.bands)).toContain(got.band);
      }),
    );
  });
});

describe('X-Priority', () => {
  test.each([
    ['10', 100],
    ['-10', -100],
    ['5', 50],
    ['elevated', 100],
    ['Normal', 0],
    ['low', -100],
  ])('%s is %i points', (value, points) => {
    expect(base({ xPriority: [value] })).toBe(points);
  });

  test('counts in the configured unit', () => {
    const rules = rulesWith({ xPriorityUnit: 1 });
    expect(basePriority({ xPriority: ['25'] }, rules).base).toBe(25);
  });

  test.each([[['1.5']], [['batch']], [['1', '1']]])(
    '%j cannot be read: 0, and counted',
    (values) => {
      expect(basePriority({ xPriority: values }, defaultRules)).toEqual({
        base: 0,
        band: 'normal',
        notices: ['x_priority_unreadable'],
      });
    },
  );
});

describe('X-Berth-Intent', () => {
  test.each([
    ['chat', 100],
    ['image', 100],
    ['Video', 100],
    ['skill', 0],
    ['film-shot', -100],
    ['scheduled', -100],
    ['standing-query', -100],
  ])('%s is %i points', (intent, points) => {
    expect(base({ intent: [intent] })).toBe(points);
    expect(noticed({ intent: [intent] })).toEqual([]);
  });

  test('that is not in the table is normal, and counted', () => {
    expect(base({ intent: ['mining'], keyDefault: 80 })).toBe(0);
    expect(noticed({ intent: ['mining'] })).toEqual(['intent_unknown']);
    expect(noticed({ intent: ['toString'] })).toEqual(['intent_unknown']);
  });

  test('that came twice is 0, and counted', () => {
    expect(noticed({ intent: ['chat', 'image'] })).toEqual(['intent_unreadable']);
  });

  test('that is unknown where no band is called normal is 0', () => {
    const rules = rulesWith({ bands: { low: -40, high: 40 }, intents: {} });
    expect(basePriority({ intent: ['mining'] }, rules).base).toBe(0);
  });
});

describe('floor, ceiling and bound', () => {
  test('a model floor counts in steps of X-Priority', () => {
    expect(base({ xPriority: ['-10'], modelFloor: 5 })).toBe(50);
    expect(base({ modelFloor: 5 })).toBe(50);
    expect(base({ xPriority: ['8'], modelFloor: 5 })).toBe(80);
    expect(base({ modelFloor: -5 })).toBe(0);
  });

  test('the ceiling of the key is not passed, and a clamp is counted', () => {
    expect(basePriority({ llamaSwapPriority: ['500'], ceiling: 100 }, defaultRules)).toEqual({
      base: 100,
      band: 'interactive',
      notices: ['clamped_to_ceiling'],
    });
    expect(noticed({ llamaSwapPriority: ['100'], ceiling: 100 })).toEqual([]);
    expect(base({ llamaSwapPriority: ['500'], ceiling: null })).toBe(500);
  });

  test('the ceiling comes after the floor', () => {
    expect(base({ llamaSwapPriority: ['-100'], modelFloor: 50, ceiling: 100 })).toBe(100);
  });

  test.each([
    ['10001', 10_000],
    ['-10001', -10_000],
    ['9'.repeat(400), 10_000],
    [`-${'9'.repeat(400)}`, -10_000],
  ])('%s is held within the bound, and counted', (value, points) => {
    expect(base({ llamaSwapPriority: [value] })).toBe(points);
    expect(noticed({ llamaSwapPriority: [value] })).toEqual(['clamped_to_bound']);
  });
});

describe('the nearest band', () => {
  test.each([
    [-100, 'batch'],
    [-10_000, 'batch'],
    [-51, 'batch'],
    [-50, 'normal'],
    [49, 'normal'],
    [50, 'interactive'],
    [10_000, 'interactive'],
  ])('of %i is %s', (points, band) => {
    expect(nearestBand(points, defaultRules)).toBe(band);
  });

  test('does not depend on the order in which bands are named', () => {
    const bands = { interactive: 100, normal: 0, batch: -100 };
    expect(nearestBand(50, rulesWith({ bands }))).toBe('interactive');
    expect(nearestBand(-50, rulesWith({ bands }))).toBe('normal');
  });

  test('needs a band', () => {
    expect(() => nearestBand(0, rulesWith({ bands: {} }))).toThrow('no band');
  });
});
