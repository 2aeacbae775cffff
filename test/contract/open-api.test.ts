import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { jobEvent } from '../../src/gateway/job-event.ts';
import { accessFor } from '../../src/ingress/access-rules.ts';
import { openApiDocument } from '../../src/ingress/api/open-api-document.ts';
import { createIngress } from '../../src/ingress/app.ts';
import { errorCodes, errorTable, shownCode } from '../../src/ingress/error-table.ts';
import { matchRoute } from '../../src/ingress/route-table.ts';
import { FilmRoutes } from '../../src/ingress/routes/films.ts';
import { outcomes } from '../../src/policy/outcome.ts';
import { routesOf } from '../support/app-routes.ts';
import { DocumentCheck } from '../support/open-api.ts';

const bands = ['batch', 'normal', 'interactive'];
const check = new DocumentCheck(JSON.parse(JSON.stringify(openApiDocument({ bands }))));
const { document } = check;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
);

/** Routes that are part of a page: its files, and Bull Board's own. */
const isPartOfAPage = (route: string): boolean =>
  route === 'get /berth/docs/{file}' || route.includes(' /berth/board/');

test('the document is OpenAPI 3.1', async () => {
  const validator = new Validator();
  const result = await validator.validate({ ...document });
  expect(result.errors ?? []).toEqual([]);
  expect([result.valid, validator.version]).toEqual([true, '3.1']);
});

test('all its schemas are JSON Schema 2020-12, and all its references lead somewhere', () => {
  for (const name of Object.keys(document.components.schemas)) check.validator(name);
  const text = JSON.stringify(document);
  const references = new Set([...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path));
  expect(references.size).toBeGreaterThan(30);
  for (const path of references) {
    const found = String(path)
      .split('/')
      .reduce<unknown>(
        (part, key) => (part as Record<string, unknown> | undefined)?.[key],
        document,
      );
    expect([path, typeof found]).toEqual([path, 'object']);
  }
  for (const [, schema] of text.matchAll(/"schema":(\{"type":"[a-z]+"[^{}]*\})/g))
    check.inline(JSON.parse(String(schema)));
});

test('each operation has a name of its own', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

test('it has every route of Berth, and no other', () => {
  const nothing = {} as never;
  const server = createIngress({
    films: new FilmRoutes({ service: {} } as never),
    jobs: { bands } as never,
    queues: [],
    ...{ proxy: nothing, upgrades: nothing, checks: nothing, metrics: nothing, plan: nothing },
    ...{ gatekeeper: nothing, telemetry: nothing, onError: nothing },
  });
  const documented = operations
    .filter(({ path }) => path.startsWith('/berth'))
    .map(({ method, path }) => `${method} ${path}`);
  const known = routesOf(server);
  expect(known.filter((route) => !isPartOfAPage(route)).toSorted()).toEqual(documented.toSorted());
});

test('every other operation is one that the GPU works on', () => {
  const others = operations.filter(({ path }) => !path.startsWith('/berth'));
  expect(others.length).toBeGreaterThan(20);
  for (const { method, path } of others)
    expect([path, matchRoute(method.toUpperCase(), path).needsGpu]).toEqual([path, true]);
});

test('it says of each route whether a key is needed', () => {
  for (const { method, path, operation } of operations) {
    const access = accessFor(method.toUpperCase(), path.replaceAll(/[{}]/g, ''));
    expect([path, operation.security === undefined]).toEqual([path, access !== 'none']);
  }
});

test('it has every code of an error, each with its status', () => {
  expect(document.components.schemas.ErrorCode?.enum).toEqual(errorCodes);
  for (const code of errorCodes) {
    const { status, type } = errorTable[code];
    expect(document.info.description).toContain(`| \`${code}\` | ${status} |`);
    if (code === 'client_closed') continue;
    const { content } = document.components.responses[`Error${status}`] as {
      content: Record<string, { examples: Record<string, { value: unknown }> }>;
    };
    const shown = shownCode(code);
    const example = content['application/json']?.examples[shown]?.value;
    expect(example).toMatchObject({ error: { type, code: shown } });
    expect(check.faults('Error', example)).toEqual([]);
  }
});

test('the event of every end is as the document has it', () => {
  for (const outcome of outcomes) {
    const event = jobEvent({
      eventId: 'e-1',
      jobId: '0b5f5a3e-6d0e-4f0e-9f4b-0d6c3f6f1d77',
      sealedAddress: Buffer.alloc(0),
      outcome,
      code: outcome === 'completed' ? '' : 'cancelled',
      message: 'm',
      facts: {
        ...{ version: 1, method: 'POST', route: '/v1/images/generations', kind: 'image' },
        ...{ model: 'flux', stream: false, member: 'ann', tier: 'free', base: 0, band: 'normal' },
        ...{ mode: 'async', bodyBytes: 1, bodySha256: '0' },
      },
      ...{
        createdMs: 1_796_025_540_123,
        startedMs: outcome === 'evicted' ? null : 1_796_025_580_001,
      },
      ...{ endedMs: 1_796_025_600_000, attempts: 1, gpuMs: 20_000 },
    });
    expect(check.faults('JobEvent', JSON.parse(event))).toEqual([]);
  }
});

test('its version is that of the package', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(document.info.version).toBe(version);
});
