import * as z from 'zod';
import { documentSchema } from './document-schema.ts';
import { isObject } from './merge-document.ts';

/** The part of JSON Schema that the configuration file's schema uses. */
export interface JsonSchema {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
  pattern?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  items?: JsonSchema;
  anyOf?: JsonSchema[];
  required?: string[];
  properties?: Record<string, JsonSchema>;
  propertyNames?: JsonSchema;
  additionalProperties?: JsonSchema | false;
}

/** The schema of the effective configuration, its defaults filled in. */
export function documentJsonSchema(defaults: unknown): JsonSchema {
  const schema = z.toJSONSchema(documentSchema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      // Zod's whole numbers say how far JavaScript counts, which is no limit of a setting.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  }) as JsonSchema;
  return withDefaults(schema, defaults);
}

/**
 * The schema of what an operator writes: a file laid over the defaults, so nothing is required and an entry
 * of a named table may be null.
 */
export function fileJsonSchema(defaults: unknown): JsonSchema {
  return { ...asOverlay(documentJsonSchema(defaults)), description: 'Configuration of Berth.' };
}

function withDefaults(schema: JsonSchema, value: unknown): JsonSchema {
  if (schema.properties === undefined) {
    return value === undefined ? schema : { ...schema, default: value };
  }
  const known = isObject(value) ? value : {};
  const properties = Object.entries(schema.properties).map(([key, inner]) => [
    key,
    withDefaults(inner, known[key]),
  ]);
  return { ...schema, properties: Object.fromEntries(properties) as Record<string, JsonSchema> };
}

function asOverlay(schema: JsonSchema): JsonSchema {
  const rest = { ...schema };
  delete rest.required;
  if (rest.properties !== undefined) {
    const properties = Object.entries(rest.properties).map(([key, inner]) => [
      key,
      asOverlay(inner),
    ]);
    return { ...rest, properties: Object.fromEntries(properties) as Record<string, JsonSchema> };
  }
  if (rest.additionalProperties === undefined || rest.additionalProperties === false) return rest;
  const entry = asOverlay(rest.additionalProperties);
  return { ...rest, additionalProperties: { anyOf: [entry, { type: 'null' }] } };
}
