import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HttpModelCatalogue } from '../../src/adapters/upstream/http-model-catalogue.ts';
import { HttpModelServer } from '../../src/adapters/upstream/http-model-server.ts';
import { demoModels } from '../../src/demo-model-server/catalogue.ts';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

let demo: ScriptedModelServer;
let server: HttpModelServer;
let catalogue: HttpModelCatalogue;

beforeEach(async () => {
  const models = demoModels.map((model) => ({ ...model, unlisted: model.id === 'demo-video' }));
  demo = await startDemoModelServer({ models, apiKeys: ['k'] });
  server = new HttpModelServer({ url: demo.url });
  catalogue = new HttpModelCatalogue(server, ['Authorization', 'Bearer k']);
});

afterEach(async () => {
  await server.close();
  await demo.close();
});

test('aliases and peers resolve, unlisted models are known, others are not', async () => {
  expect(await catalogue.lookUp('demo-chat')).toBe('known');
  expect(catalogue.resolve('demo-chat')).toBe('demo-chat-small');
  expect([catalogue.isPeer('remote-chat'), catalogue.isPeer('demo-chat')]).toEqual([true, false]);
  expect(catalogue.resolve('remote-chat')).toBe('demo-peer/remote-chat');
  expect(await catalogue.lookUp('demo-video')).toBe('known');
  expect(await catalogue.lookUp('nobody')).toBe('unknown');
  expect(catalogue.resolve('nobody')).toBe('nobody');
});

test('a profile made active is followed within a moment', async () => {
  expect(await catalogue.lookUp('demo-any-chat')).toBe('unknown');
  const response = await fetch(`${demo.url}/api/profiles/active`, {
    method: 'PUT',
    headers: { 'x-api-key': 'k' },
    body: '{"name":"quality"}',
  });
  expect(response.status).toBe(200);
  await eventually(() => catalogue.resolve('demo-any-chat') === 'demo-chat-large', {
    what: 'the pin to be known',
  });
});

test('a server that answers nothing leaves what was known, and makes nothing unknown', async () => {
  await catalogue.lookUp('demo-chat');
  await demo.refuseConnections();
  await eventually(async () => (await catalogue.lookUp('nobody')) === 'unsure', {
    what: 'the failed reading',
  });
  expect(await catalogue.lookUp('demo-chat')).toBe('known');
  expect(catalogue.resolve('demo-chat')).toBe('demo-chat-small');
  expect(catalogue.isPeer('remote-chat')).toBe(true);
});

test('without any reading an id is its own and no peer', async () => {
  await demo.refuseConnections();
  expect([catalogue.resolve('demo-chat'), catalogue.isPeer('remote-chat')]).toEqual([
    'demo-chat',
    false,
  ]);
  expect(await catalogue.lookUp('demo-chat')).toBe('unsure');
});

test('a server without profiles pins nothing', async () => {
  demo.fault(
    { kind: 'answer', status: 404, body: '404 page not found' },
    { where: ({ target }) => target === '/api/profiles', times: Infinity },
  );
  expect(await catalogue.lookUp('nobody')).toBe('unknown');
});

test('many questions at once cost few readings', async () => {
  await Promise.all(
    Array.from({ length: 500 }, async (_, index) => {
      await catalogue.lookUp(`unknown-${index}`);
      catalogue.resolve('demo-chat');
    }),
  );
  const readings = demo.record.filter(({ target }) => target === '/v1/models');
  expect(readings.length).toBeLessThanOrEqual(2);
});
