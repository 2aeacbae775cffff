/** A service class: what its members' jobs are worth. */
export interface TierRule {
  /** Points added to each job of the tier: a whole number, at least 0. */
  readonly bonus: number;
  /** Share of the GPU against other members of the band under lasting contention; above 0. */
  readonly weight: number;
}

/** How waiting earns points. */
export interface AgingRules {
  /** Seconds of waiting that earn one point, and GPU-seconds that one point is worth in a turn; above 0. */
  readonly divisorSeconds: number;
  /** Whose clock runs between bands: the band's, or each job's own (the literal rule). */
  readonly clock: 'band' | 'job';
  /** How far a run moves its band's clock, in seconds for each GPU-second used. */
  readonly charge: number;
  /** How long a finished producer's next job is waited for: at most `seconds`, and `share` of the run. */
  readonly hold: { readonly seconds: number; readonly share: number };
}

/** The slice of the configuration that the policy decides by. */
export interface Rules {
  /** Base priority of each named band. */
  readonly bands: Readonly<Record<string, number>>;
  readonly tiers: Readonly<Record<string, TierRule>>;
  /** Points for a job whose model is resident: a whole number, at least 0. */
  readonly affinity: { readonly bonus: number };
  readonly aging: AgingRules;
  /** Band of each intent that `X-Berth-Intent` may name, in lower case. */
  readonly intents: Readonly<Record<string, string>>;
  /** Points that one step of `X-Priority` is worth. */
  readonly xPriorityUnit: number;
  /** Least priority of a model's jobs, in steps of `X-Priority`. */
  readonly modelFloors: Readonly<Record<string, number>>;
}

/** No base priority lies outside plus or minus this. */
export const baseBound = 10_000;

const longestDivisorSeconds = 1_000_000;

/** What Berth decides by when nothing is configured. */
export const defaultRules: Rules = {
  bands: { batch: -100, normal: 0, interactive: 100 },
  tiers: {
    free: { bonus: 0, weight: 1 },
    pro: { bonus: 1, weight: 1.5 },
    max: { bonus: 2, weight: 2 },
  },
  affinity: { bonus: 10 },
  aging: { divisorSeconds: 60, clock: 'band', charge: 50, hold: { seconds: 1, share: 0.02 } },
  intents: {
    chat: 'interactive',
    image: 'interactive',
    video: 'interactive',
    skill: 'normal',
    'film-shot': 'batch',
    scheduled: 'batch',
    'standing-query': 'batch',
  },
  xPriorityUnit: 10,
  modelFloors: {},
};

const clocks: readonly string[] = ['band', 'job'] satisfies AgingRules['clock'][];

const noTier: TierRule = { bonus: 0, weight: 1 };

/** The rule of a tier; one that is not configured has no bonus and weight 1. */
export function tierRule(tier: string, rules: Rules): TierRule {
  return (Object.hasOwn(rules.tiers, tier) ? rules.tiers[tier] : undefined) ?? noTier;
}

/** The divisor in milliseconds: what one point is worth, in time waited or GPU time. */
export function pointMs(rules: Rules): number {
  return Math.round(rules.aging.divisorSeconds * 1000);
}

/** The most points that tier and affinity add to one job: what must stay below the gap between bands. */
export function largestOffset(rules: Rules): number {
  return (
    Math.max(0, ...Object.values(rules.tiers).map((tier) => tier.bonus)) + rules.affinity.bonus
  );
}

/** Points between the highest and the lowest named band. */
export function bandSpan(rules: Rules): number {
  const values = Object.values(rules.bands);
  return Math.max(...values) - Math.min(...values);
}

/** Says, with the numbers, what is wrong with the rules; empty when Berth may start with them. */
export function checkRules(rules: Rules): string[] {
  return [
    ...bandFaults(rules),
    ...tierFaults(rules),
    ...agingFaults(rules),
    ...intakeFaults(rules),
  ];
}

function bandFaults(rules: Rules): string[] {
  const bands = Object.entries(rules.bands).sort((a, b) => a[1] - b[1]);
  const offset = largestOffset(rules);
  const faults = bands.length > 0 ? [] : ['bands: at least one band is needed'];
  for (const [name, value] of bands) {
    if (!isWhole(value, -baseBound, baseBound)) {
      faults.push(`bands.${name} is ${value}: a whole number within ±${baseBound} is needed`);
    }
  }
  let lower: readonly [string, number] | undefined;
  for (const band of bands) {
    if (lower !== undefined) faults.push(...gapFaults(lower, band, offset));
    lower = band;
  }
  return faults;
}

function gapFaults(
  lower: readonly [string, number],
  upper: readonly [string, number],
  offset: number,
): string[] {
  const gap = upper[1] - lower[1];
  if (gap === 0) {
    return [`bands.${lower[0]} and bands.${upper[0]} are both ${lower[1]}: two values are needed`];
  }
  if (gap > offset) return [];
  return [
    `bands.${lower[0]} (${lower[1]}) and bands.${upper[0]} (${upper[1]}) are ${gap} apart: ` +
      `the gap must be above ${offset}, the largest tier bonus and the affinity together`,
  ];
}

function tierFaults(rules: Rules): string[] {
  const faults: string[] = [];
  for (const [name, tier] of Object.entries(rules.tiers)) {
    if (!isWhole(tier.bonus, 0, baseBound)) {
      faults.push(`tiers.${name}.bonus is ${tier.bonus}: a whole number from 0 is needed`);
    }
    if (!(tier.weight > 0 && Number.isFinite(tier.weight))) {
      faults.push(`tiers.${name}.weight is ${tier.weight}: it must be above 0`);
    }
  }
  if (!isWhole(rules.affinity.bonus, 0, baseBound)) {
    faults.push(`affinity.bonus is ${rules.affinity.bonus}: a whole number from 0 is needed`);
  }
  return faults;
}

function agingFaults(rules: Rules): string[] {
  const { divisorSeconds, clock, charge, hold } = rules.aging;
  const bandCount = Object.keys(rules.bands).length;
  const faults: string[] = [];
  if (!(divisorSeconds >= 0.001 && divisorSeconds <= longestDivisorSeconds)) {
    faults.push(
      `aging.divisorSeconds is ${divisorSeconds}: it must be above 0 (from 0.001 to ${longestDivisorSeconds})`,
    );
  }
  if (!clocks.includes(clock)) faults.push(`aging.clock is ${clock}: band or job is needed`);
  if (!(Number.isFinite(charge) && charge > bandCount)) {
    faults.push(`aging.charge is ${charge}: it must be above ${bandCount}, the number of bands`);
  }
  if (!(hold.seconds >= 0 && Number.isFinite(hold.seconds))) {
    faults.push(`aging.hold.seconds is ${hold.seconds}: it must be 0 or more`);
  }
  if (!(hold.share >= 0 && hold.share <= 1)) {
    faults.push(`aging.hold.share is ${hold.share}: it must be within 0 and 1`);
  }
  return faults;
}

function intakeFaults(rules: Rules): string[] {
  const faults: string[] = [];
  for (const [intent, band] of Object.entries(rules.intents)) {
    if (!Object.hasOwn(rules.bands, band)) {
      faults.push(`intents.${intent} is ${band}: no band has that name`);
    }
  }
  if (!isWhole(rules.xPriorityUnit, 1, baseBound)) {
    faults.push(`xPriorityUnit is ${rules.xPriorityUnit}: a whole number from 1 is needed`);
  }
  for (const [model, floor] of Object.entries(rules.modelFloors)) {
    if (!isWhole(floor, -baseBound, baseBound)) {
      faults.push(
        `modelFloors.${model} is ${floor}: a whole number within ±${baseBound} is needed`,
      );
    }
  }
  return faults;
}

function isWhole(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}
