import type { ConfigurationFault } from './configuration-error.ts';
import {
  environmentSchema,
  variableMeta,
  type Environment,
  type VariableName,
} from './environment-schema.ts';

/** Either the environment, or every fault found in it. */
export type EnvironmentReading =
  | { readonly environment: Environment; readonly faults: readonly [] }
  | { readonly environment: null; readonly faults: readonly ConfigurationFault[] };

/** Names of the variables Berth reads, in the order of the reference. */
export const variableNames = Object.keys(environmentSchema.shape) as readonly VariableName[];

/** Reads the variables; outer blanks do not count and an empty one is unset. */
export function readEnvironment(env: NodeJS.ProcessEnv): EnvironmentReading {
  const texts = Object.fromEntries(variableNames.map((name) => [name, textOf(env, name)]));
  const parsed = environmentSchema.safeParse(texts);
  if (parsed.success) return { environment: parsed.data, faults: [] };
  const faults = new Map<VariableName, ConfigurationFault>();
  for (const issue of parsed.error.issues) {
    const name = issue.path[0] as VariableName;
    const { accepts, isSecret } = variableMeta(name);
    const needed = issue.code === 'custom' ? issue.message : `${accepts} is needed`;
    const value = isSecret === true ? 'its value' : JSON.stringify(texts[name]);
    faults.set(name, { path: name, what: `${value} will not do: ${needed}` });
  }
  return { environment: null, faults: [...faults.values()] };
}

/** A variable without outer blanks; undefined when unset or empty. */
export function textOf(env: NodeJS.ProcessEnv, name: VariableName): string | undefined {
  const text = env[name]?.trim();
  return text === '' ? undefined : text;
}
