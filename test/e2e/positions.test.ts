import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { eventually } from '../support/eventually.ts';
import { guest, WaitingRoom } from '../support/waiting-room.ts';

let room: WaitingRoom;

beforeAll(async () => {
  room = await WaitingRoom.open();
});
afterAll(async () => room.close());

const view = async (): Promise<QueueView> => {
  const response = await fetch(`${room.system.url}/berth/queue`);
  return (await response.json()) as QueueView;
};

test('a caller\u2019s position may rise as higher-priority work arrives, and the plan is the order that comes', async () => {
  const seen: (number | undefined)[] = [];
  const positionOf = async (base: number, waiting: number): Promise<number | undefined> => {
    const shown = await eventually(
      async () => {
        const all = await view();
        const isNew = all.running !== null && all.waiting.length === waiting;
        return isNew ? all : null;
      },
      { what: `${waiting} jobs in the plan`, timeoutMs: 5000 },
    );
    return shown.waiting.find((job) => job.base_priority === base)?.position;
  };
  const late = (count: number, index: number): Promise<void> =>
    room.waiting(count).then(async () => {
      seen[index] = await positionOf(5, count);
    });
  const gate = room.demo.hold();
  const running = room.serve(guest('running'));
  await gate.arrived;
  const mine = room.serve(guest('mine', { 'x-llamaswap-priority': '5' }));
  await late(1, 0);
  const urgent = room.serve(guest('urgent', { 'x-llamaswap-priority': '100' }));
  await late(2, 1);
  const more = room.serve(guest('more urgent', { 'x-llamaswap-priority': '250' }));
  await late(3, 2);
  const all = await view();
  const planned = all.waiting.map(({ base_priority: base }) => base);
  expect(all.running?.state).toBe('running');
  for (const { score, position, eta_seconds: eta } of all.waiting) {
    const { band, tier, affinity, aging, effective } = score;
    expect(effective).toBeCloseTo(band + tier + affinity + aging, 1);
    expect(position).toBeGreaterThanOrEqual(1);
    expect(eta.p90).toBeGreaterThanOrEqual(eta.p50);
  }
  gate.release();
  await Promise.all([running, mine, urgent, more]);
  expect(seen).toEqual([1, 2, 3]);
  expect(planned).toEqual([250, 100, 5]);
  const order = room.demo.generations().map(({ headers }) => headers['x-test-name']);
  expect(order).toEqual(['running', 'more urgent', 'urgent', 'mine']);
});

test('200 requests in a burst for one model: no client sees the model server\u2019s own 429', async () => {
  const before = room.demo.attempts().length;
  const burst = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => room.serve(guest(`burst ${index}`))),
  );
  expect(new Set(burst.map(({ status }) => status))).toEqual(new Set([200]));
  const asked = room.demo.attempts().slice(before);
  expect(asked).toHaveLength(200);
  expect(asked.filter(({ status }) => status === 429)).toEqual([]);
  expect(room.demo.overlaps).toBe(0);
}, 60_000);

test('the same burst past the gateway is refused in part: the model server does have a limit', async () => {
  const statuses = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const { path, init } = guest(`direct ${index}`, {}, { max_tokens: 5000 });
      const response = await fetch(room.demo.url + path, init);
      await response.arrayBuffer();
      return response.status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([200, 429]));
});
