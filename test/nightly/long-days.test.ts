import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Random } from '../../src/simulate/random.ts';
import { waitQuantile } from '../../src/simulate/report.ts';
import { withRealHold } from '../support/compressed-rules.ts';
import {
  builtIn,
  rendersAgainstBacklog,
  rendersAgainstProducer,
  streamAndStraggler,
  twoFilms,
} from '../support/day-workloads.ts';
import {
  DaysPlayed,
  farthestApartMs,
  runsOf,
  say,
  shareOf,
  waitMs,
  waitRatio,
} from '../support/days-played.ts';

const second = 1000;
const minute = 60 * second;
/** An image of 10 s takes half a second. */
const shareFactor = 20;

/**
 * What test/e2e plays in two minutes, longer and less compressed: the whole day with a film, slow enough that the
 * gateway's own time, though stretched with the day, may count in full; twice as many turns of renders and images, each
 * as the model server saw them; two films to their ends; and days of a single member.
 */
const days = new DaysPlayed({
  film: [builtIn('film-day', new Random(1)), { factor: 120 }],
  backlog: [rendersAgainstBacklog(4), { factor: shareFactor }],
  producer: [
    rendersAgainstProducer(4, shareFactor),
    { factor: shareFactor, rules: withRealHold(shareFactor) },
  ],
  films: [twoFilms(), { factor: 120 }],
  stream: [streamAndStraggler(), { factor: 40 }],
  alternating: [builtIn('alternating', new Random(1)), { factor: 40 }],
});
beforeAll(async () => days.begin(), 120_000);
afterAll(async () => days.close());

describe('longer days of a GPU, less compressed, through real processes', () => {
  test('a whole day with a film: chats wait as long as the simulator says, the stretched time of the gateway included', async () => {
    const day = await days.outcome('film');
    const { stretched } = waitRatio('interactive', day);
    say(`interactive p95: ${stretched.toFixed(3)} of the simulator's`);
    expect(day.overlaps).toBe(0);
    expect(day.simulation.ran).toHaveLength(day.simulated.ran.length);
    expect(stretched).toBeLessThanOrEqual(1.05);
    const p95Ms = waitQuantile(runsOf(day.simulation.ran, 'interactive'), 0.95);
    expect(p95Ms).toBeLessThanOrEqual((250 + 2 * 30 + 20) * second);
  }, 900_000);

  test.each(['backlog', 'producer'])(
    'four 16-minute renders and as much of 10-second images have half of the GPU each: images as a %s',
    async (name) => {
      const { simulation, overlaps } = await days.outcome(name);
      const share = shareOf('image', simulation.ran);
      say(`images as a ${name}: ${share.toFixed(4)} of the GPU`);
      expect(overlaps).toBe(0);
      expect(Math.abs(share - 0.5)).toBeLessThanOrEqual(0.02);
    },
    900_000,
  );

  test('two films of 40 shots never differ by more than a shot with its swap and 720 s of GPU time', async () => {
    const { simulation, overlaps } = await days.outcome('films');
    const shots = runsOf(simulation.ran, 'batch');
    const mostMs = farthestApartMs('one', 'other', shots);
    say(`two films: at most ${(mostMs / second).toFixed(0)} s of GPU time apart`);
    expect(overlaps).toBe(0);
    expect(shots).toHaveLength(80);
    expect(mostMs).toBeLessThanOrEqual((240 + 30 + 720) * second);
  }, 900_000);

  test('one member, a steady stream at base 100 and one job at 60: it runs after 40 minutes more than they wait', async () => {
    const { simulation, simulated } = await days.outcome('stream');
    for (const { ran } of [simulation, simulated]) {
      const at = ran.findIndex(({ job }) => job.base === 60);
      const waitedMs = waitMs(ran[at]!);
      const before = ran.slice(0, at);
      const longestMs = Math.max(...before.map((run) => run.endMs - run.startMs));
      say(`the job at 60 waited ${(waitedMs / minute).toFixed(2)} min`);
      expect(before.slice(1).every((run) => waitMs(run) > 0)).toBe(true);
      expect(waitedMs).toBeGreaterThanOrEqual(40 * minute);
      expect(waitedMs).toBeLessThanOrEqual(
        40 * minute + Math.max(...before.map(waitMs)) + longestMs,
      );
    }
  }, 900_000);

  test('one member, 40 jobs that alternate between two models, waiting together: at most 2 swaps', async () => {
    const { simulation } = await days.outcome('alternating');
    const loads = simulation.ran.filter(({ swapMs }) => swapMs > 0);
    // The first load fills an empty GPU.
    expect(loads.length - 1).toBeLessThanOrEqual(2);
  }, 900_000);
});
