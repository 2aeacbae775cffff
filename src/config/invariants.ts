import { checkRules } from '../policy/rules.ts';
import type { ConfigurationFault } from './configuration-error.ts';
import type { ConfigurationDocument } from './document-schema.ts';
import { keyRule } from './key-schema.ts';

/** What must hold between settings that are each within their range; empty when all does. */
export function documentFaults(document: ConfigurationDocument): ConfigurationFault[] {
  return [
    ...ruleFaults(document),
    ...attemptFaults(document),
    ...leaseFaults(document),
    ...durationFaults(document),
    ...keyFaults(document),
  ];
}

/** The policy's own invariants. The sections must have the right types; their ranges are checked here too. */
export function ruleFaults(rules: Parameters<typeof checkRules>[0]): ConfigurationFault[] {
  return checkRules(rules).map((line) => {
    const section = /^[A-Za-z]+/.exec(line)?.[0] ?? 'BERTH_CONFIG';
    return { path: section, what: line.replace(`${section}: `, '') };
  });
}

function attemptFaults({ attempts }: ConfigurationDocument): ConfigurationFault[] {
  const { firstBackoffSeconds: first, longestBackoffSeconds: longest } = attempts;
  if (first <= longest) return [];
  const what = `${first} is above attempts.longestBackoffSeconds, which is ${longest}`;
  return [{ path: 'attempts.firstBackoffSeconds', what }];
}

function leaseFaults({ leases }: ConfigurationDocument): ConfigurationFault[] {
  const { text } = leases;
  const ascending: [string, number, string, number][] = [
    ['text.preparationSeconds', text.preparationSeconds, 'text.baseSeconds', text.baseSeconds],
    ['text.baseSeconds', text.baseSeconds, 'text.capUntrustedSeconds', text.capUntrustedSeconds],
    [
      'text.capUntrustedSeconds',
      text.capUntrustedSeconds,
      'text.capTrustedSeconds',
      text.capTrustedSeconds,
    ],
    ...(['image', 'audio', 'video'] as const).map((kind): [string, number, string, number] => [
      `${kind}.defaultSeconds`,
      leases[kind].defaultSeconds,
      `${kind}.capSeconds`,
      leases[kind].capSeconds,
    ]),
  ];
  return ascending
    .filter(([, lower, , upper]) => lower > upper)
    .map(([name, lower, other, upper]) => ({
      path: `leases.${name}`,
      what: `${lower} is above leases.${other}, which is ${upper}`,
    }));
}

function durationFaults({ durations }: ConfigurationDocument): ConfigurationFault[] {
  const { models, ...kinds } = durations;
  const named = Object.entries(models).map(([id, guess]) => [`models.${id}`, guess] as const);
  return [...Object.entries(kinds), ...named]
    .filter(([, { p50Seconds, p90Seconds }]) => p50Seconds > p90Seconds)
    .map(([name, { p50Seconds, p90Seconds }]) => ({
      path: `durations.${name}.p50Seconds`,
      what: `${p50Seconds} is above durations.${name}.p90Seconds, which is ${p90Seconds}`,
    }));
}

function keyFaults(document: ConfigurationDocument): ConfigurationFault[] {
  const faults: ConfigurationFault[] = [];
  const names = new Map<string, number>();
  const hashes = new Map<string, number>();
  for (const [index, entry] of document.keys.entries()) {
    const path = `keys.${index}`;
    const key = keyRule(entry);
    const namesake = names.get(key.name);
    const twin = hashes.get(key.sha256);
    if (namesake !== undefined) {
      faults.push({ path: `${path}.name`, what: `keys.${namesake} has the same name` });
    }
    if (twin !== undefined) {
      faults.push({ path: `${path}.sha256`, what: `keys.${twin} is the same key` });
    }
    names.set(key.name, namesake ?? index);
    hashes.set(key.sha256, twin ?? index);
    if (!Object.hasOwn(document.tiers, key.tier)) {
      faults.push({ path: `${path}.tier`, what: `no tier is called ${key.tier}` });
    }
    if (key.maxPriority !== null && key.defaultPriority > key.maxPriority) {
      faults.push({
        path: `${path}.defaultPriority`,
        what: `${key.defaultPriority} is above its maxPriority, which is ${key.maxPriority}`,
      });
    }
  }
  return faults;
}
