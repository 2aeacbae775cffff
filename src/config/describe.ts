import type { BerthConfig } from './berth-config.ts';
import { variableNames } from './read-environment.ts';
import { variableMeta } from './environment-schema.ts';

/** The effective configuration as it may be shown: JSON values only, nothing secret in it. */
export interface DescribedConfig {
  /** By variable; null: unset, and that has a meaning of its own. */
  readonly environment: Readonly<Record<string, string | number | boolean | null>>;
  /** The configuration file's effective content. */
  readonly configuration: Readonly<Record<string, unknown>>;
}

const hidden = '[hidden]';

/** What may be logged and printed of a configuration: credentials, passwords and key hashes are hidden. */
export function describeConfig(config: BerthConfig): DescribedConfig {
  const { environment, document } = config.source;
  return {
    environment: Object.fromEntries(
      variableNames.map((name) => {
        const value = environment[name];
        const isSecret = variableMeta(name).isSecret === true;
        return [name, isSecret && typeof value === 'string' ? withoutSecrets(value) : value];
      }),
    ),
    configuration: {
      ...document,
      keys: document.keys.map((key) => ({ ...key, sha256: hidden })),
    },
  };
}

/** An address without user, password, query and fragment; anything else is hidden whole. */
function withoutSecrets(value: string): string {
  if (!/^[a-z]+:\/\//.test(value) || !URL.canParse(value)) return hidden;
  const url = new URL(value);
  const credentials = url.username + url.password === '' ? '' : `${hidden}@`;
  const rest = url.search + url.hash === '' ? '' : `?${hidden}`;
  return `${url.protocol}//${credentials}${url.host}${url.pathname}${rest}`;
}
