import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Random } from '../../src/simulate/random.ts';
import { waitQuantile } from '../../src/simulate/report.ts';
import { withRealHold } from '../support/compressed-rules.ts';
import { chargedShareOf, promptTurns } from '../support/day-books.ts';
import {
  burstAtMs,
  filmHours,
  mortHour,
  rendersAgainstBacklog,
  rendersAgainstProducer,
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
/** An image of 10 s takes 170 ms: what the gateway needs beside it is a small part. */
const shareFactor = 60;

/** What a real run of 10 s is followed by: 2 % of it. */
const holdMs = 200;

/** Played at the same time; each takes about a minute. */
const days = new DaysPlayed({
  film: [filmHours(new Random(1), 6.5), { factor: 380 }],
  backlog: [rendersAgainstBacklog(2), { factor: shareFactor }],
  producer: [
    rendersAgainstProducer(2, shareFactor),
    { factor: shareFactor, rules: withRealHold(shareFactor) },
  ],
  mort: [mortHour(new Random(1)), { factor: 75 }],
});
beforeAll(async () => days.begin(), 120_000);
afterAll(async () => days.close());

describe('hours of a GPU on a compressed clock, through real processes', () => {
  test('a day with a film: chats wait as long as the simulator says, and for at most one shot', async () => {
    const day = await days.outcome('film');
    const ratio = waitRatio('interactive', day);
    say(
      `interactive p95 against the simulator's: ${ratio.inRealTime.toFixed(3)}; ` +
        `${ratio.stretched.toFixed(3)} with the gateway's time stretched`,
    );
    expect(day.overlaps).toBe(0);
    expect(day.simulated.ran.length - day.simulation.ran.length).toBeLessThanOrEqual(1);
    // What the gateway needs between two runs is as long as ever: stretched by 380 it would be the machine's noise.
    expect(ratio.inRealTime).toBeLessThanOrEqual(1.05);
    const p95Ms = waitQuantile(runsOf(day.inRealTime, 'interactive'), 0.95);
    expect(p95Ms).toBeLessThanOrEqual((250 + 2 * 30 + 20) * second);
  }, 240_000);

  test('two equal films never differ by more than a shot with its swap and 720 s of GPU time', async () => {
    const { simulation } = await days.outcome('film');
    const shots = runsOf(simulation.ran, 'batch');
    const first = shots.find(({ job }) => (job.member as string) === 'film-b');
    const both = shots.filter(({ startMs }) => startMs >= (first?.job.arrivalMs ?? Infinity));
    const mostMs = farthestApartMs('film-a', 'film-b', both);
    say(`two equal films: at most ${(mostMs / second).toFixed(0)} s of GPU time apart`);
    expect(both.length).toBeGreaterThanOrEqual(40);
    expect(mostMs).toBeLessThanOrEqual((250 + 30 + 720) * second);
  }, 240_000);

  test('16-minute renders and 10-second images, both waiting together, have half of the GPU each', async () => {
    const { simulation, booked, overlaps } = await days.outcome('backlog');
    const share = shareOf('image', simulation.ran);
    say(
      `images as a backlog: ${share.toFixed(4)} of the GPU time the model server saw, ` +
        `${chargedShareOf('image', booked).toFixed(4)} of what is on record`,
    );
    expect(overlaps).toBe(0);
    expect(Math.abs(share - 0.5)).toBeLessThanOrEqual(0.02);
  }, 240_000);

  test('16-minute renders and 10-second images that are sent one at a time have half of the GPU each', async () => {
    const { simulation, booked, overlaps } = await days.outcome('producer');
    const turns = promptTurns('image', 'video', booked, holdMs);
    const share = chargedShareOf('image', turns);
    say(
      `images one at a time: ${share.toFixed(4)} of the GPU time charged in ${turns.length} of ` +
        `${booked.length} runs, ${shareOf('image', simulation.ran).toFixed(4)} of what the model server saw`,
    );
    expect(overlaps).toBe(0);
    // A client that a busy machine kept from its next request for longer than the hold is not waited for, by design.
    expect(turns.length).toBeGreaterThanOrEqual(90);
    expect(Math.abs(share - 0.5)).toBeLessThanOrEqual(0.02);
  }, 240_000);

  test('an hour of 30 members with all intents and tiers: all are served, the urgent ones first', async () => {
    const day = await days.outcome('mort');
    const ran = day.inRealTime.filter(({ job }) => job.arrivalMs < burstAtMs);
    expect(day.overlaps).toBe(0);
    expect(new Set(ran.map(({ job }) => job.member)).size).toBe(30);
    expect(new Set(ran.map(({ job }) => job.tier)).size).toBe(3);
    expect(day.simulation.ran).toHaveLength(day.simulated.ran.length);
    const longestMs = Math.max(...ran.map((run) => run.endMs - run.startMs));
    expect(waitQuantile(runsOf(ran, 'interactive'), 0.95)).toBeLessThanOrEqual(longestMs);
    const means = ['interactive', 'normal', 'batch'].map((band) => {
      const waits = runsOf(ran, band).map(waitMs);
      return waits.reduce((sum, each) => sum + each, 0) / waits.length / second;
    });
    say(`mean waits of interactive, normal, batch: ${means.map((s) => s.toFixed(0)).join(', ')} s`);
    expect(means).toEqual(means.toSorted((a, b) => a - b));
  }, 240_000);

  test('a burst of 200 requests for one model: each is answered, none refused', async () => {
    const { inRealTime, statuses } = await days.outcome('mort');
    expect(inRealTime.filter(({ job }) => job.arrivalMs >= burstAtMs)).toHaveLength(200);
    expect(Object.keys(statuses)).toEqual(['200']);
  }, 240_000);
});
