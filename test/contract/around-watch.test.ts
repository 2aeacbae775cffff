import { expect, test } from '@jest/globals';
import { AroundWatch } from '../../src/adapters/upstream/around-watch.ts';
import type { AroundRequest } from '../../src/adapters/upstream/around-watch.ts';

const row = (id: string, extra: object = {}): object => ({
  ...{ id, model: 'm', method: 'POST', req_path: '/v1/chat/completions', req_headers: {} },
  ...extra,
});
const event = (data: object): string =>
  JSON.stringify({ type: 'inflight', data: JSON.stringify(data) });

test('work that reached the model server without Berth is told once, and nothing else is', () => {
  const seen: AroundRequest[] = [];
  const watch = new AroundWatch(
    (model) => model === 'peer/x',
    (request) => seen.push(request),
  );
  const ours = row('2', { req_headers: { 'X-Berth-Job-Id': 'j' } });
  watch.read(event({ operation: 'snapshot', requests: [row('1'), ours] }));
  watch.read(event({ operation: 'upsert', request: row('1') }));
  watch.read(event({ operation: 'upsert', request: row('3', { model: 'peer/x' }) }));
  watch.read(event({ operation: 'upsert', request: row('4', { method: 'GET' }) }));
  watch.read(event({ operation: 'upsert', request: row('5', { model: null }) }));
  watch.read(event({ operation: 'snapshot', requests: null }));
  for (const odd of ['"inflight"', '{"type":"inflight","data":"{"}', '{"type":"logData"}'])
    watch.read(odd);
  watch.read(event({ operation: 'upsert', request: row('6', { model: 'n' }) }));
  expect(seen.map(({ model }) => model)).toEqual(['m', 'n']);
});
