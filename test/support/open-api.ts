import type { Schema, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** A JSON object of the document. */
export type Part = Record<string, unknown>;

/** An operation as the tests look at it. */
export interface DocumentedOperation {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly responses: Readonly<Record<string, Part>>;
}

/** The document as the tests look at it. */
export interface OpenApi {
  readonly openapi: string;
  readonly info: { readonly version: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Part>>;
    readonly responses: Readonly<Record<string, Part>>;
  };
}

const REFERENCE = '#/components/schemas/';

/** A document whose schemas answers are held against: a field that it does not name is a fault here. */
export class DocumentCheck {
  readonly document: OpenApi;
  private readonly ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false });

  constructor(document: unknown) {
    this.document = document as OpenApi;
    // The types of the package take its default export for the module.
    (addFormats as unknown as (ajv: Ajv2020) => void)(this.ajv);
    for (const [name, schema] of Object.entries(this.document.components.schemas))
      this.ajv.addSchema(this.resolvable(schema), `berth:${name}`);
  }

  /** A check of values against a named schema; throws where the schema itself is none. */
  validator(name: string): ValidateFunction {
    const validate = this.ajv.getSchema(`berth:${name}`);
    if (validate === undefined) throw new Error(`the document has no schema ${name}`);
    return validate;
  }

  /** A check of values against a schema of the document that has no name. */
  inline(schema: unknown): ValidateFunction {
    return this.ajv.compile(this.resolvable(schema));
  }

  /** What is wrong with a value, by a named schema. */
  faults(name: string, value: unknown): unknown[] {
    const validate = this.validator(name);
    return validate(value) ? [] : (validate.errors ?? []);
  }

  /** What is wrong with an answer to an operation: status, headers, form and JSON. `body`: its text. */
  answerFaults(method: string, path: string, response: Response, body: string): unknown[] {
    const documented = this.responseOf(method, path, response.status);
    if (documented === undefined) return [`${method} ${path} has no status ${response.status}`];
    const headers = Object.keys(documented.headers ?? {});
    const missing = headers.filter((name) => !response.headers.has(name));
    const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? '';
    const content = (documented.content ?? {}) as Record<string, { schema?: { $ref?: string } }>;
    const form = content[type] ?? content['*/*'];
    if (form === undefined) return body === '' ? missing : [...missing, `no form ${type}`];
    const name = form.schema?.$ref?.replace(REFERENCE, '');
    return name === undefined ? missing : [...missing, ...this.faults(name, JSON.parse(body))];
  }

  private responseOf(method: string, path: string, status: number): Part | undefined {
    const found = this.document.paths[path]?.[method]?.responses[String(status)];
    const name = (found?.$ref as string | undefined)?.split('/').at(-1);
    return name === undefined ? found : this.document.components.responses[name];
  }

  private resolvable(schema: unknown): Schema {
    return closed(JSON.parse(JSON.stringify(schema).replaceAll(REFERENCE, 'berth:'))) as Schema;
  }
}

/** The schema without room for fields it does not name. */
function closed(schema: unknown): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(closed);
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, closed(value)]),
  );
  const isObject = inner.type === 'object' && 'properties' in inner;
  return isObject ? { additionalProperties: false, ...inner } : inner;
}
