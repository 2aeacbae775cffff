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

/**
 * Rules, uncompressed, under which a compressed day waits for an expected job as long as real time would: 200 ms after
 * a run that stands for 10 s. What a client needs from an answer to its next request does not shrink with the day.
 */
export function withRealHold(factor: number, rules: Rules = defaultRules): Rules {
  const { aging } = rules;
  const { seconds, share } = aging.hold;
  const hold = { seconds: seconds * factor, share: Math.min(1, share * factor) };
  return { ...rules, aging: { ...aging, hold } };
}
