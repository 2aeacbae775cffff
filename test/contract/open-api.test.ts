import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { jobEvent } from '../../src/gateway/job-event.ts';
import { newRecord } from '../../src/gateway/job-object.ts';
import { JobStory } from '../../src/gateway/job-story.ts';
import { accessFor } from '../../src/ingress/access-rules.ts';
import { openApiDocument } from '../../src/ingress/api/open-api-document.ts';
import { createIngress } from '../../src/ingress/app.ts';
import { errorCodes, errorTable, shownCode } from '../../src/ingress/error-table.ts';
import { BOARD_PATH } from '../../src/ingress/routes/board.ts';
import { matchRoute } from '../../src/ingress/route-table.ts';
import { FilmRoutes } from '../../src/ingress/routes/films.ts';
import { outcomes } from '../../src/policy/outcome.ts';
import type { JobFacts } from '../../src/ports/job-queue.ts';
import type { JobRecord } from '../../src/ports/job-records.ts';
import { routesOf } from '../support/app-routes.ts';
import { DocumentCheck } from '../support/open-api.ts';

const bands = ['batch', 'normal', 'interactive'];
const check = new DocumentCheck(JSON.parse(JSON.stringify(openApiDocument({ bands }))));
const { document } = check;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
);

/** Bull Board is an application of its own, mounted as a whole; the files of the other page are no interface. */
const APART = [`get ${BOARD_PATH}`, 'get /berth/docs/{file}'];

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
  const isShared = (route: string): boolean => !APART.includes(route);
  expect(routesOf(server).filter(isShared).toSorted()).toEqual(
    documented.filter(isShared).toSorted(),
  );
  expect(documented).toContain(APART[0]);
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

const facts: JobFacts = {
  ...{ version: 1, method: 'POST', route: '/v1/images/generations', kind: 'image' },
  ...{ model: 'flux', stream: false, member: 'ann', tier: 'free', base: 0, band: 'normal' },
  ...{ mode: 'async', bodyBytes: 1, bodySha256: '0' },
};
const jobId = '0b5f5a3e-6d0e-4f0e-9f4b-0d6c3f6f1d77';

test('every event of a job on its way is as the document has it', () => {
  const waiting = newRecord(facts, { jobId, arrival: 1, nowMs: 1_796_025_540_123, isNew: true });
  const running: JobRecord = {
    ...{ ...waiting, state: 'running', runs: 1, attempts: 1, startedMs: 1_796_025_580_001 },
    answer: { run: 1, bytes: 10, isWhole: false },
  };
  const done: JobRecord = { ...running, state: 'completed', endedMs: 1_796_025_600_000 };
  const story = JobStory.after('');
  const events = [
    ...(story?.tell(waiting, { position: 1, eta: { p50: 1, p90: 2.5 } }) ?? []),
    ...(story?.tell(running, { position: undefined, eta: { p50: 1, p90: 2.5 } }) ?? []),
    ...(story?.tell(done, undefined) ?? []),
  ];
  const schemas = { state: 'StateEvent', position: 'PositionEvent', progress: 'ProgressEvent' };
  const names = ['state', 'position', 'state', 'progress', 'state'];
  expect(events.map(({ name }) => name)).toEqual(names);
  for (const { name, data } of events) expect(check.faults(schemas[name], data)).toEqual([]);
});

test('the event of every end is as the document has it', () => {
  for (const outcome of outcomes) {
    const event = jobEvent({
      eventId: 'e-1',
      jobId,
      sealedAddress: Buffer.alloc(0),
      outcome,
      code: outcome === 'completed' ? '' : 'cancelled',
      message: 'm',
      facts,
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
