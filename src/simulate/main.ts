import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { loadConfigOrExit } from '../config/load.ts';
import { Random } from './random.ts';
import { reportOf, type Outcome } from './report.ts';
import { simulate } from './run.ts';
import { scenarios, type Scenario } from './scenarios.ts';
import { withSettings } from './settings.ts';
import { timelineOf } from './timeline.ts';
import { readTrace } from './trace.ts';

const usage = `npm run simulate -- [SCENARIO ...] [options]

Runs workloads against the scheduling policy that is configured and prints what each band and member got.

  --list             name the built-in scenarios (default: run them all)
  --trace FILE       run this workload instead: JSON lines with at, seconds, member, tier, priority, model
  --swap SECONDS     time to load another model in a trace (default 30)
  --set SETTINGS     replace values of the configured rules: affinity.bonus=5,aging.charge=20
  --vs SETTINGS      run once more with these as well and show both side by side: aging.clock=job
  --seed NUMBER      seed of what arrives by chance (default 1)
  --svg FILE         write a timeline of the (first) workload`;

try {
  main();
} catch (error) {
  console.error(`simulate: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      trace: { type: 'string' },
      swap: { type: 'string', default: '30' },
      set: { type: 'string', default: '' },
      vs: { type: 'string' },
      seed: { type: 'string', default: '1' },
      svg: { type: 'string' },
    },
  });
  if (values.help || values.list) {
    console.log(values.help ? usage : scenarios.map(described).join('\n'));
    return;
  }

  const seed = wholeNumber(values.seed, '--seed');
  const swapMs = 1000 * wholeNumber(values.swap, '--swap');
  const rules = withSettings(loadConfigOrExit().rules, values.set);
  const variants = [{ name: values.set === '' ? 'as configured' : values.set, rules }];
  if (values.vs !== undefined) {
    variants.push({ name: values.vs, rules: withSettings(rules, values.vs) });
  }
  const chosen = values.trace === undefined ? named(positionals) : [traced(values.trace, swapMs)];
  console.log(`seed ${seed}`);
  for (const scenario of chosen) {
    const outcomes = variants.map(({ name, rules: own }): Outcome => {
      return { name, simulation: simulate(scenario.workload(new Random(seed)), own) };
    });
    console.log(`\n${described(scenario)}\n${reportOf(outcomes, rules)}`);
    if (values.svg !== undefined && scenario === chosen[0]) {
      writeFileSync(values.svg, timelineOf(outcomes, rules));
    }
  }
}

function named(names: readonly string[]): readonly Scenario[] {
  if (names.length === 0) return scenarios;
  return names.map((name) => {
    const scenario = scenarios.find((each) => each.name === name);
    if (scenario === undefined) throw new RangeError(`no scenario is called ${name}; see --list`);
    return scenario;
  });
}

function traced(path: string, swapMs: number): Scenario {
  const workload = readTrace(readFileSync(path, 'utf8'), swapMs);
  return { name: path, about: `${workload.arrivals.length} jobs`, workload: () => workload };
}

function described(scenario: Scenario): string {
  return `${scenario.name}: ${scenario.about}`;
}

function wholeNumber(text: string, option: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new RangeError(`${option} is ${text}: a whole number from 0 is needed`);
}
