import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { planNumbers } from '../../src/adapters/redis/plan-numbers.ts';

const STEP = 2 ** 32;
/** BullMQ runs 0 ahead of everything, 1 is kept free, and 2^21 - 1 is the last number it takes. */
const LEAST = 2 * STEP;
const MOST = 2_097_151 * STEP + (STEP - 1);

/** Jobs in the order of the plan, and the scores they have. */
interface Queue {
  readonly order: readonly string[];
  readonly scores: ReadonlyMap<string, number>;
}

/** Scores anywhere, crowded at both ends of what is allowed, right beside one another, equal, or out of bounds. */
const score = fc.oneof(
  fc.maxSafeInteger().filter((value) => value >= 0),
  fc.integer({ min: 0, max: 12 }).map((value) => LEAST - 6 + value),
  fc.integer({ min: 0, max: 12 }).map((value) => MOST - value),
  fc.integer({ min: 0, max: 12 }).map((value) => 1_048_576 * STEP + value),
  fc
    .tuple(fc.integer({ min: 0, max: 2_097_151 }), fc.integer({ min: 1, max: 99 }))
    .map(([cls, arrival]) => cls * STEP + arrival),
);

const queue: fc.Arbitrary<Queue> = fc.array(score, { maxLength: 60 }).chain((values) =>
  fc
    .shuffledSubarray([...values.keys()], {
      minLength: values.length,
      maxLength: values.length,
    })
    .map((places) => queueOf(places.map((place) => values[place] ?? 0))),
);

/** A queue whose scores rise along its plan, as after a pass. */
const rising: fc.Arbitrary<Queue> = fc
  .uniqueArray(
    score.filter((value) => value >= LEAST && value <= MOST),
    { minLength: 1, maxLength: 60 },
  )
  .map((values) => queueOf(values.sort((a, b) => a - b)));

function queueOf(values: readonly number[]): Queue {
  const order = values.map((_, index) => `job-${index}`);
  return { order, scores: new Map(order.map((id, index) => [id, values[index] ?? 0])) };
}

function applied({ order, scores }: Queue): Map<string, number> {
  const after = new Map(scores);
  for (const { id, score: next } of planNumbers(order, scores)) after.set(id, next);
  return after;
}

/** As Redis has a sorted set: by score, then by name. */
function standing(scores: ReadonlyMap<string, number>): string[] {
  return [...scores].sort(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([id]) => id);
}

describe('the numbers of a plan', () => {
  test('make BullMQ’s order the plan’s, whatever the numbers were', () => {
    fc.assert(
      fc.property(queue, (given) => {
        expect(standing(applied(given))).toEqual(given.order);
      }),
      { numRuns: 1000 },
    );
  });

  test('are whole, distinct and within what BullMQ takes', () => {
    fc.assert(
      fc.property(queue, (given) => {
        const scores = [...applied(given).values()];
        expect(scores.every((value) => Number.isSafeInteger(value))).toBe(true);
        expect(scores.every((value) => value >= LEAST && value <= MOST)).toBe(true);
        expect(new Set(scores).size).toBe(scores.length);
      }),
      { numRuns: 1000 },
    );
  });

  test('stay when the order is right already', () => {
    fc.assert(
      fc.property(queue, (given) => {
        expect(planNumbers(given.order, applied(given))).toEqual([]);
      }),
    );
  });

  test('are never written to a job that has that number, nor twice', () => {
    fc.assert(
      fc.property(queue, (given) => {
        const changes = planNumbers(given.order, given.scores);
        for (const { id, score: next } of changes) expect(given.scores.get(id)).not.toBe(next);
        expect(new Set(changes.map(({ id }) => id)).size).toBe(changes.length);
      }),
    );
  });

  test('change for one job alone when one job moves and there is room', () => {
    const spaced = fc
      .integer({ min: 1, max: 60 })
      .map((count) =>
        queueOf(Array.from({ length: count }, (_, index) => LEAST + (index + 1) * STEP)),
      );
    fc.assert(
      fc.property(spaced, fc.nat(), fc.nat(), ({ order, scores }, from, to) => {
        const moved = order[from % order.length] ?? '';
        const others = order.filter((id) => id !== moved);
        const goal = others.toSpliced(to % order.length, 0, moved);
        const changes = planNumbers(goal, scores);
        expect(changes.length).toBe(goal.join() === order.join() ? 0 : 1);
        const after = applied({ order: goal, scores });
        expect(standing(after)).toEqual(goal);
      }),
    );
  });

  test('are spread over all there is when there is no room between two', () => {
    fc.assert(
      fc.property(rising, fc.nat(), ({ order, scores }, place) => {
        const at = place % order.length;
        const crowded = new Map(order.map((id, index) => [id, 500 * STEP + index]));
        crowded.set('new', 900 * STEP);
        const goal = order.toSpliced(at, 0, 'new');
        fc.pre(at > 0 && scores.size > 1);
        const changes = planNumbers(goal, crowded);
        expect(changes).toHaveLength(goal.length);
        const steps = changes.map(({ score: value }) => value);
        const gaps = steps.slice(1).map((value, index) => value - (steps[index] ?? 0));
        expect(Math.min(...gaps)).toBeGreaterThan((MOST - LEAST) / (goal.length + 2));
      }),
    );
  });
});

test('jobs of the plan that BullMQ does not have get no number', () => {
  const scores = new Map([
    ['b', LEAST + 5],
    ['a', LEAST + 9],
  ]);
  const changes = planNumbers(['gone', 'a', 'in-backoff', 'b'], scores);
  expect(changes.every(({ id }) => scores.has(id))).toBe(true);
  expect(planNumbers(['gone'], new Map())).toEqual([]);
});

test('at both ends there is room until the bound is reached', () => {
  const among = (own: number, ...others: number[]) =>
    new Map([['new', own], ...others.map((value, index) => [`old-${index}`, value] as const)]);
  const front = among(MOST, LEAST + 1, LEAST + 2);
  expect(planNumbers(['new', 'old-0', 'old-1'], front)).toEqual([{ id: 'new', score: LEAST }]);
  const back = among(LEAST, MOST - 2, MOST - 1);
  expect(planNumbers(['old-0', 'old-1', 'new'], back)).toEqual([{ id: 'new', score: MOST }]);
  const full = among(MOST, LEAST, LEAST + 1);
  expect(planNumbers(['new', 'old-0', 'old-1'], full)).toHaveLength(3);
});
