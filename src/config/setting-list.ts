import type { JsonSchema } from './json-schema.ts';

/** One row of the reference of settings. */
export interface Setting {
  /** `leases.text.baseSeconds`, `tiers.<name>.weight`, `keys[].name`. */
  readonly path: string;
  /** Type and range in words. */
  readonly accepts: string;
  /** JSON; absent where there is none. */
  readonly default?: string;
  readonly description: string;
}

/** Every setting that the schema of the effective configuration names, in its order. */
export function listSettings(schema: JsonSchema, path = ''): Setting[] {
  if (schema.properties !== undefined) {
    const required = new Set(schema.required);
    return Object.entries(schema.properties).flatMap(([key, inner]) =>
      key === '$schema'
        ? []
        : listSettings(inner, path === '' ? key : `${path}.${key}`).map((row) =>
            path.endsWith('[]') && !required.has(key) ? optional(row) : row,
          ),
    );
  }
  return [settingOf(schema, path), ...entriesOf(schema, path)];
}

function entriesOf(schema: JsonSchema, path: string): Setting[] {
  if (typeof schema.additionalProperties === 'object') {
    const isTable = schema.additionalProperties.properties !== undefined;
    return isTable ? listSettings(schema.additionalProperties, `${path}.<name>`) : [];
  }
  return schema.items?.properties === undefined ? [] : listSettings(schema.items, `${path}[]`);
}

function optional(row: Setting): Setting {
  return { ...row, accepts: `${row.accepts}; optional` };
}

function settingOf(schema: JsonSchema, path: string): Setting {
  const row = { path, accepts: accepts(schema), description: schema.description ?? '' };
  return schema.default === undefined ? row : { ...row, default: JSON.stringify(schema.default) };
}

function accepts(schema: JsonSchema): string {
  if (schema.anyOf !== undefined) return schema.anyOf.map(accepts).join(' or ');
  if (schema.enum !== undefined)
    return schema.enum.map((each) => `\`${String(each)}\``).join(' or ');
  const { minimum, exclusiveMinimum, maximum } = schema;
  const bounds = [
    ...(exclusiveMinimum === undefined ? [] : [`above ${exclusiveMinimum}`]),
    ...(minimum === undefined ? [] : [`from ${minimum}`]),
    ...(maximum === undefined ? [] : [`to ${maximum}`]),
  ];
  return [wordFor(schema), ...bounds].join(' ');
}

function wordFor(schema: JsonSchema): string {
  const { type = '', items, additionalProperties } = schema;
  if (type === 'array')
    return items?.properties === undefined ? 'list of texts' : 'list of objects';
  if (type === 'object') {
    const entry = typeof additionalProperties === 'object' ? additionalProperties : {};
    return entry.properties === undefined ? `name → ${accepts(entry)}` : 'name → object';
  }
  return { integer: 'whole number', string: 'text' }[type] ?? type;
}
