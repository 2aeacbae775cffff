import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Random } from '../../src/simulate/random.ts';
import { waitQuantile } from '../../src/simulate/report.ts';
import type { Simulation } from '../../src/simulate/run.ts';
import { compressedRules } from '../support/compressed-rules.ts';
import {
  builtIn,
  mortHour,
  rendersAgainstBacklog,
  rendersAgainstProducer,
  streamAndStraggler,
  twoFilms,
} from '../support/day-workloads.ts';
import { DaysPlayed, gpuMs, runsOf, say, waitMs } from '../support/days-played.ts';

const second = 1000;
const minute = 60 * second;
const shareFactor = 90;
const { aging, ...others } = compressedRules(shareFactor);
/**
 * A client's turn-around does not shrink with the day: the 200 ms that a real 10 s image earns would be 2 ms here.
 * So the expected job is waited for as long as a client needs, as it would be in real time.
 */
const patient = { ...others, aging: { ...aging, hold: { seconds: 0.1, share: 0.8 } } };

const days = new DaysPlayed({
  backlog: [rendersAgainstBacklog(3), { factor: shareFactor }],
  producer: [rendersAgainstProducer(3), { factor: shareFactor, compressed: patient }],
  films: [twoFilms(), { factor: 360 }],
  mort: [mortHour(new Random(1)), { factor: 60 }],
  stream: [streamAndStraggler(), { factor: 40 }],
  alternating: [builtIn('alternating', new Random(1)), { factor: 40 }],
});
beforeAll(async () => days.begin(), 60_000);
afterAll(async () => days.close());

/** GPU time of `member` out of that of all, over the whole turns: until the last render began. */
function shareOf(member: string, day: Simulation): number {
  const last = day.ran.findLast(({ job }) => (job.member as string) === 'video')?.startMs ?? 0;
  const whole = day.ran.filter(({ startMs }) => startMs < last);
  return gpuMs(whole.filter(({ job }) => (job.member as string) === member)) / gpuMs(whole);
}

describe('hours of a GPU on a compressed clock, through real processes', () => {
  test.each(['backlog', 'producer'])(
    '16-minute renders and 10-second images have half of the GPU each: images as a %s',
    async (name) => {
      const { simulation, overlaps } = await days.outcome(name);
      const share = shareOf('image', simulation);
      say(`images as a ${name}: ${share.toFixed(4)} of the GPU`);
      expect(overlaps).toBe(0);
      expect(Math.abs(share - 0.5)).toBeLessThanOrEqual(0.02);
    },
    240_000,
  );

  test('two equal films never differ by more than a shot with its swap and 720 s of GPU time', async () => {
    const { simulation, overlaps } = await days.outcome('films');
    const shots = runsOf(simulation, 'batch');
    expect(overlaps).toBe(0);
    expect(shots).toHaveLength(80);
    const lastOf = (member: string): number =>
      shots.findLastIndex(({ job }) => (job.member as string) === member);
    let ahead = 0;
    let most = 0;
    for (const shot of shots.slice(0, Math.min(lastOf('one'), lastOf('other')) + 1)) {
      ahead += (shot.endMs - shot.startMs) * ((shot.job.member as string) === 'one' ? 1 : -1);
      most = Math.max(most, Math.abs(ahead));
    }
    say(`two films: at most ${(most / second).toFixed(0)} s of GPU time apart`);
    expect(most).toBeLessThanOrEqual((270 + 720) * second);
  }, 240_000);

  test('one member, a steady stream at base 100 and one job at 60: it runs within 40 minutes and one job', async () => {
    const { simulation } = await days.outcome('stream');
    const straggler = simulation.ran.find(({ job }) => job.base === 60)!;
    say(`the job at 60 waited ${(waitMs(straggler) / minute).toFixed(2)} min`);
    expect(waitMs(straggler)).toBeGreaterThanOrEqual(39 * minute);
    expect(waitMs(straggler)).toBeLessThanOrEqual(40 * minute + 20 * second);
  }, 240_000);

  test('an hour of 30 members with all intents and tiers: all are served, the urgent ones first', async () => {
    const { simulation, simulated, overlaps } = await days.outcome('mort');
    expect(overlaps).toBe(0);
    expect(new Set(simulation.ran.map(({ job }) => job.member)).size).toBe(30);
    expect(new Set(simulation.ran.map(({ job }) => job.tier)).size).toBe(3);
    expect(simulation.ran).toHaveLength(simulated.ran.length);
    const longestMs = Math.max(...simulation.ran.map((run) => run.endMs - run.startMs));
    expect(waitQuantile(runsOf(simulation, 'interactive'), 0.95)).toBeLessThanOrEqual(longestMs);
    const means = ['interactive', 'normal', 'batch'].map((band) => {
      const runs = runsOf(simulation, band);
      return runs.reduce((sum, run) => sum + waitMs(run), 0) / runs.length / second;
    });
    say(`mean waits of interactive, normal, batch: ${means.map((s) => s.toFixed(0)).join(', ')} s`);
    expect(means).toEqual(means.toSorted((a, b) => a - b));
  }, 240_000);

  test('one member, 40 jobs that alternate between two models, waiting together: at most 2 swaps', async () => {
    const { simulation } = await days.outcome('alternating');
    const swaps = simulation.ran.filter(({ swapMs }) => swapMs > 0).length - 1;
    expect(swaps).toBeLessThanOrEqual(2);
  }, 240_000);
});
