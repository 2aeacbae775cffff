import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Random } from '../../src/simulate/random.ts';
import { waitQuantile } from '../../src/simulate/report.ts';
import { builtIn, twentyShots } from '../support/day-workloads.ts';
import { DaysPlayed, runsOf, say } from '../support/days-played.ts';

const second = 1000;
/** The simulator's p95 of a chat's wait on this day. */
const usualWaitMs = 264 * second;

const trial = new DaysPlayed({ trial: [twentyShots(), { factor: 480 }] });
let days: DaysPlayed | undefined;

/**
 * What the gateway needs between two runs does not shrink with the day, and a chat's wait holds two or three such
 * gaps. So the day is compressed as far as they stay below 3.5 % of that wait: 1/480 on a quiet machine.
 */
beforeAll(async () => {
  await trial.begin();
  const { gapsMs } = await trial.outcome('trial');
  await trial.close();
  const gapMs = gapsMs.toSorted((a, b) => a - b)[Math.floor(gapsMs.length / 2)] ?? 1;
  const bearable = (0.035 * usualWaitMs) / (2.5 * gapMs);
  const factor = Math.round(Math.min(480, Math.max(240, bearable)));
  days = new DaysPlayed({ film: [builtIn('film-day', new Random(1)), { factor }] });
  await days.begin();
}, 90_000);
afterAll(async () => {
  await trial.close();
  await days?.close();
});

describe('a day with a film on a compressed clock, through real processes', () => {
  test('chats wait as long as the simulator says, and for at most one shot', async () => {
    const { simulation, simulated, overlaps } = await days!.outcome('film');
    const p95Ms = waitQuantile(runsOf(simulation, 'interactive'), 0.95);
    const simulatedMs = waitQuantile(runsOf(simulated, 'interactive'), 0.95);
    say(`interactive p95: ${(p95Ms / simulatedMs).toFixed(3)} of the simulator's`);
    expect(overlaps).toBe(0);
    expect(simulation.ran).toHaveLength(simulated.ran.length);
    expect(p95Ms).toBeLessThanOrEqual(1.05 * simulatedMs);
    expect(p95Ms).toBeLessThanOrEqual((250 + 2 * 30 + 20) * second);
  }, 360_000);
});
