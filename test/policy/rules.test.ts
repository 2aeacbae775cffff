import { describe, expect, test } from '@jest/globals';
import { checkRules, defaultRules, tierRule, type Rules } from '../../src/policy/rules.ts';
import { rulesWith } from '../support/builders.ts';

const aging = (changes: Partial<Rules['aging']>): Partial<Rules> => ({
  aging: { ...defaultRules.aging, ...changes },
});

describe('rules', () => {
  test('as they come have no fault', () => {
    expect(checkRules(defaultRules)).toEqual([]);
  });

  test.each<[string, Partial<Rules>, string[]]>([
    ['no band', { bands: {}, intents: {} }, ['bands: at least one band is needed']],
    [
      'a gap no larger than tier bonus and affinity together',
      { bands: { batch: -100, normal: -88, interactive: 100 } },
      [
        'bands.batch (-100) and bands.normal (-88) are 12 apart: ' +
          'the gap must be above 12, the largest tier bonus and the affinity together',
      ],
    ],
    [
      'two bands at one value',
      { bands: { batch: -100, normal: 0, interactive: 0 } },
      ['bands.normal and bands.interactive are both 0: two values are needed'],
    ],
    [
      'a band that is no whole number',
      { bands: { batch: -100, normal: 0.5, interactive: 100 } },
      ['bands.normal is 0.5: a whole number within ±10000 is needed'],
    ],
    [
      'a band beyond the bound',
      { bands: { batch: -10_001, normal: 0, interactive: 100 } },
      ['bands.batch is -10001: a whole number within ±10000 is needed'],
    ],
    [
      'a weight of 0',
      { tiers: { free: { bonus: 0, weight: 0 } } },
      ['tiers.free.weight is 0: it must be above 0'],
    ],
    [
      'a weight without end',
      { tiers: { free: { bonus: 0, weight: Infinity } } },
      ['tiers.free.weight is Infinity: it must be above 0'],
    ],
    [
      'a negative tier bonus',
      { tiers: { free: { bonus: -1, weight: 1 } } },
      ['tiers.free.bonus is -1: a whole number from 0 is needed'],
    ],
    [
      'an affinity in fractions',
      { affinity: { bonus: 1.5 } },
      ['affinity.bonus is 1.5: a whole number from 0 is needed'],
    ],
    [
      'a divisor of 0',
      aging({ divisorSeconds: 0 }),
      ['aging.divisorSeconds is 0: it must be above 0 (from 0.001 to 1000000)'],
    ],
    [
      'a divisor beyond reason',
      aging({ divisorSeconds: 1e9 }),
      ['aging.divisorSeconds is 1000000000: it must be above 0 (from 0.001 to 1000000)'],
    ],
    [
      'a charge not above the number of bands',
      aging({ charge: 3 }),
      ['aging.charge is 3: it must be above 3, the number of bands'],
    ],
    [
      'a charge without end',
      aging({ charge: Infinity }),
      ['aging.charge is Infinity: it must be above 3, the number of bands'],
    ],
    [
      'a hold of less than nothing',
      aging({ hold: { seconds: -1, share: 2 } }),
      [
        'aging.hold.seconds is -1: it must be 0 or more',
        'aging.hold.share is 2: it must be within 0 and 1',
      ],
    ],
    [
      'a hold without end',
      aging({ hold: { seconds: Infinity, share: -1 } }),
      [
        'aging.hold.seconds is Infinity: it must be 0 or more',
        'aging.hold.share is -1: it must be within 0 and 1',
      ],
    ],
    [
      'an intent for a band that is not there',
      { intents: { chat: 'urgent' } },
      ['intents.chat is urgent: no band has that name'],
    ],
    ['a unit of 0', { xPriorityUnit: 0 }, ['xPriorityUnit is 0: a whole number from 1 is needed']],
    [
      'a floor in fractions',
      { modelFloors: { video: 0.5 } },
      ['modelFloors.video is 0.5: a whole number within ±10000 is needed'],
    ],
  ])('with %s are refused with the numbers', (_, changes, faults) => {
    expect(checkRules(rulesWith(changes))).toEqual(faults);
  });

  test('say all their faults at once', () => {
    const faults = checkRules(rulesWith({ ...aging({ charge: 0 }), affinity: { bonus: 200 } }));
    expect(faults).toHaveLength(3);
  });

  test('may do without tiers, and bonus, and with floors', () => {
    expect(
      checkRules(rulesWith({ tiers: {}, affinity: { bonus: 0 }, modelFloors: { video: -5 } })),
    ).toEqual([]);
  });

  test('know no bonus for a tier that is not configured', () => {
    expect(tierRule('max', defaultRules)).toEqual({ bonus: 2, weight: 2 });
    expect(tierRule('gold', defaultRules)).toEqual({ bonus: 0, weight: 1 });
    expect(tierRule('constructor', defaultRules)).toEqual({ bonus: 0, weight: 1 });
  });
});
