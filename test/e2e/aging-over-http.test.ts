import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { QueueView } from '../../src/gateway/queue-view.ts';
import { eventually } from '../support/eventually.ts';
import { guest, WaitingRoom } from '../support/waiting-room.ts';

/** A point is 20 ms here: what takes 198 minutes in life takes 4 s. */
const config = 'fast-aging.config.json';
let room: WaitingRoom;

beforeAll(async () => {
  room = await WaitingRoom.open(config);
});
afterAll(async () => room.close());

const film = guest('film', {
  'x-llamaswap-priority': 'batch',
  'x-berth-member': 'film',
  'x-berth-tier': 'max',
});
const fresh = guest('fresh', { 'x-llamaswap-priority': 'interactive', 'x-berth-member': 'chat' });

/** Resolves when the film's shot shows so many points. */
async function effectiveOfFilm(least: number): Promise<void> {
  await eventually(
    async () => {
      const response = await fetch(`${room.system.url}/berth/queue`);
      const view = (await response.json()) as QueueView;
      const shot = view.waiting.find(({ member }) => member === 'film');
      return shot !== undefined && shot.score.effective >= least;
    },
    { what: `the film to have ${least} points`, timeoutMs: 15_000 },
  );
}

test.each([
  [
    'stays behind fresh interactive work before 198 points have been earned',
    -40,
    ['fresh', 'film'],
  ],
  ['overtakes fresh interactive work after 198 points', 112, ['film', 'fresh']],
])('a lone max batch job %s', async (_, points, expected) => {
  const gate = room.demo.hold((request) => request.headers['x-test-name'] === 'running');
  const before = room.demo.generations().length;
  const running = room.serve(guest('running', { 'x-berth-member': 'other' }));
  await gate.arrived;
  const shot = room.serve(film);
  await room.waiting(1);
  await effectiveOfFilm(points);
  const chat = room.serve(fresh);
  await room.waiting(2);
  gate.release();
  await Promise.all([running, shot, chat]);
  const order = room.demo.generations().slice(before);
  expect(order.map(({ headers }) => headers['x-test-name'])).toEqual(['running', ...expected]);
});
