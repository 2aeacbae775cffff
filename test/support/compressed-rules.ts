import { defaultRules, type Rules } from '../../src/policy/rules.ts';

/**
 * The rules for a day that passes `factor` times as fast: a point is earned and spent that much sooner, and an
 * expected job is waited for that much shorter. What has no unit of time stays.
 */
export function compressedRules(factor: number, rules: Rules = defaultRules): Rules {
  const { aging } = rules;
  return {
    ...rules,
    aging: {
      ...aging,
      divisorSeconds: aging.divisorSeconds / factor,
      hold: { ...aging.hold, seconds: aging.hold.seconds / factor },
    },
  };
}
