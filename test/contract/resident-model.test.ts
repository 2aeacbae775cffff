import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { HttpModelCatalogue } from '../../src/adapters/upstream/http-model-catalogue.ts';
import { HttpModelServer } from '../../src/adapters/upstream/http-model-server.ts';
import { ResidentModelWatch } from '../../src/adapters/upstream/resident-model-watch.ts';
import { demoModels } from '../../src/demo-model-server/catalogue.ts';
import type { ModelSwap } from '../../src/ports/resident-model.ts';
import { ScriptedModelServer, startDemoModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

const LOAD_MS = 60;

let demo: ScriptedModelServer;
let server: HttpModelServer;
let catalogue: HttpModelCatalogue;
let watch: ResidentModelWatch;
let swaps: ModelSwap[];
let told: boolean[];

beforeEach(async () => {
  demo = await startDemoModelServer({ coldLoadMs: LOAD_MS, apiKeys: ['k'] });
  server = new HttpModelServer({ url: demo.url });
  catalogue = new HttpModelCatalogue(server, ['x-api-key', 'k']);
  await catalogue.lookUp('demo-chat');
});

afterEach(async () => {
  await watch.close();
  await server.close();
  await demo.close();
});

async function start(
  options: { pollMs?: number; silenceMs?: number; ignored?: string[] } = {},
): Promise<void> {
  swaps = [];
  told = [];
  watch = new ResidentModelWatch({
    server,
    headers: ['x-api-key', 'k'],
    catalogue,
    onReadable: (isReadable) => told.push(isReadable),
    ...options,
  });
  watch.onSwap((swap) => swaps.push(swap));
  await watch.start();
}

async function chat(model: string): Promise<void> {
  const response = await fetch(`${demo.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'x-api-key': 'k' },
    body: JSON.stringify({ model, messages: [], max_tokens: 1 }),
  });
  expect(response.status).toBe(200);
}

const isAt = (path: string) => (request: { target: string }) => request.target === path;
const isEvents = isAt('/api/events');
/** The catalogue gives its stream up, the watch does not. */
const followed = () =>
  eventually(() => demo.record.some((request) => isEvents(request) && !request.aborted), {
    what: 'the event stream',
  });
const noEvents = () =>
  demo.fault(
    { kind: 'answer', status: 404, body: '404 page not found' },
    { where: isEvents, times: Infinity },
  );
test('a swap is seen at once by events, loading and loaded, and is timed', async () => {
  await start({ pollMs: 60_000 });
  expect(watch.residents()).toEqual({ isKnown: true, models: [] });
  let changes = 0;
  const unsubscribe = watch.onChange(() => (changes += 1));
  await followed();
  await chat('demo-chat');
  await eventually(() => swaps.length === 1, { what: 'the first load', timeoutMs: 1000 });
  expect(watch.current()).toBe('demo-chat-small');
  const loading = chat('demo-chat-large');
  await eventually(() => watch.current() === 'demo-chat-large', {
    what: 'the swap to be seen',
    timeoutMs: 1000,
  });
  await loading;
  await eventually(() => swaps.length === 2, { what: 'the end of the swap', timeoutMs: 1000 });
  expect(swaps.map(({ model }) => model)).toEqual(['demo-chat-small', 'demo-chat-large']);
  for (const { swappedMs } of swaps) {
    // A busy machine hears late that the load began, and counts the less.
    expect(swappedMs).toBeGreaterThan(0);
    expect(swappedMs).toBeLessThan(LOAD_MS + 500);
  }
  expect(watch.residents()).toEqual({ isKnown: true, models: ['demo-chat-large'] });
  expect(changes).toBeGreaterThanOrEqual(2);
  unsubscribe();
});

test('any name of the model is resident with it, and a peer never is', async () => {
  await start();
  watch.noteDispatched('demo-chat');
  watch.noteDispatched('remote-chat');
  expect(watch.current()).toBe('demo-chat-small');
  expect(['demo-chat', 'demo-chat-small', 'remote-chat'].map((id) => watch.isResident(id))).toEqual(
    [true, true, false],
  );
  await chat('remote-chat');
  expect(watch.current()).toBe('demo-chat-small');
});

test('a model that needs no GPU is loaded all the time and never counts', async () => {
  await demo.close();
  demo = await startDemoModelServer({
    models: demoModels.map((model) => ({ ...model, isApart: model.id === 'demo-chat-small' })),
  });
  await server.close();
  server = new HttpModelServer({ url: demo.url });
  catalogue = new HttpModelCatalogue(server, []);
  await catalogue.lookUp('demo-chat');
  await start({ ignored: ['demo-chat'] });
  watch.noteDispatched('demo-chat-small');
  expect(watch.residents()).toEqual({ isKnown: true, models: [] });
  await chat('demo-chat-large');
  await eventually(() => watch.current() === 'demo-chat-large', { what: 'the load' });
  await watch.close();
  await start();
  expect(watch.residents().models).toHaveLength(2);
});

test('without events the readings of /running tell, an unload too', async () => {
  noEvents();
  await chat('demo-chat');
  await start({ pollMs: 20 });
  expect(watch.current()).toBe('demo-chat-small');
  await chat('demo-chat-large');
  await eventually(() => watch.current() === 'demo-chat-large' && swaps.length === 1, {
    what: 'the swap to be read',
  });
  await fetch(`${demo.url}/unload`, { headers: { 'x-api-key': 'k' } });
  await eventually(() => watch.residents().isKnown && watch.current() === null, {
    what: 'the unload to be read',
  });
});

test('without events a load under way is read often, however long the usual pause', async () => {
  noEvents();
  await start({ pollMs: 60_000 });
  watch.noteDispatched('demo-chat');
  await chat('demo-chat');
  await eventually(() => swaps.length === 1, { what: 'the load to be read' });
});

test('what cannot be read is unknown: nothing at first, then the last dispatched model', async () => {
  await demo.refuseConnections();
  await start({ pollMs: 20 });
  expect(watch.residents()).toEqual({ isKnown: false, models: [] });
  expect(watch.current()).toBeNull();
  watch.noteDispatched('demo-chat');
  expect(watch.residents()).toEqual({ isKnown: false, models: ['demo-chat-small'] });
  expect(watch.current()).toBe('demo-chat-small');
  expect(told).toEqual([false]);
});

test('a model server that goes away is unknown, and is known again when it is back', async () => {
  await start({ pollMs: 50 });
  await chat('demo-chat');
  await eventually(() => watch.current() === 'demo-chat-small', { what: 'the load' });
  await followed();
  await demo.refuseConnections();
  await eventually(() => !watch.residents().isKnown, { what: 'the loss to be noticed' });
  await demo.open();
  await eventually(() => watch.residents().isKnown, { what: 'a reading' });
  expect(watch.current()).toBe('demo-chat-small');
  await chat('demo-chat-large');
  await eventually(() => watch.current() === 'demo-chat-large', { what: 'the swap after it' });
  expect(told).toEqual([true, false, true]);
});

test('a stream that ends is opened anew and tells again', async () => {
  demo.fault({ kind: 'cut', afterWrites: 1, how: 'end' }, { where: isEvents });
  await start({ pollMs: 60_000 });
  await eventually(() => demo.record.filter(isEvents).length >= 3, { what: 'the second stream' });
  await chat('demo-chat');
  await eventually(() => swaps.length === 1, { what: 'the load on the second stream' });
});

test('a stream that is silent for too long is opened anew', async () => {
  await start({ pollMs: 60_000, silenceMs: 50 });
  await eventually(() => demo.record.filter(isEvents).length >= 3, {
    what: 'a second stream',
  });
});

test('a stream whose server answers nothing else is not believed for long', async () => {
  await start({ pollMs: 30 });
  await chat('demo-chat');
  await eventually(() => watch.current() === 'demo-chat-small', { what: 'the load' });
  demo.fault({ kind: 'hang_up' }, { where: isAt('/running'), times: Infinity });
  demo.fault({ kind: 'hang_up' }, { where: isEvents, times: Infinity });
  await eventually(() => !watch.residents().isKnown, { what: 'the doubt' });
});

test('a wrong key is unknown, not none', async () => {
  swaps = [];
  watch = new ResidentModelWatch({ server, headers: [], catalogue, pollMs: 20 });
  await watch.start();
  expect(watch.residents()).toEqual({ isKnown: false, models: [] });
});
