import { checkRules, type Rules } from '../policy/rules.ts';

/**
 * The rules with some values replaced: `aging.clock=job,affinity.bonus=5`. Values are JSON, or plain words.
 *
 * @throws {RangeError} when a setting names nothing of the rules, or the rules would be refused at start
 */
export function withSettings(rules: Rules, settings: string): Rules {
  const changed = structuredClone(rules);
  for (const setting of settings.split(',').filter((part) => part !== '')) {
    const [path = '', ...value] = setting.split('=');
    replace(changed, path, value.join('='));
  }
  const faults = checkRules(changed);
  if (faults.length > 0) throw new RangeError(`${settings}: ${faults.join('; ')}`);
  return changed;
}

function replace(rules: Rules, path: string, value: string): void {
  const names = path.split('.');
  const last = names.pop() ?? '';
  let place: unknown = rules;
  for (const name of names) place = own(place, name);
  if (typeof own(place, last) === 'object') {
    throw new RangeError(`${path} is no single value of the rules`);
  }
  Object.assign(place as object, { [last]: valueOf(value, typeof own(place, last), path) });

  function own(holder: unknown, name: string): unknown {
    if (typeof holder === 'object' && holder !== null && Object.hasOwn(holder, name)) {
      return (holder as Record<string, unknown>)[name];
    }
    throw new RangeError(`${path} is not in the rules`);
  }
}

function valueOf(text: string, type: string, path: string): unknown {
  const value = type === 'number' && text.trim() !== '' ? Number(text) : text;
  if (typeof value !== type || Number.isNaN(value)) {
    throw new RangeError(`${path} is ${text}: a ${type} is needed`);
  }
  return value;
}
