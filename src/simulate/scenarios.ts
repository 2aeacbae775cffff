import { Random } from './random.ts';
import type { Arrival, Chain, WorkItem, Workload } from './workload.ts';

/** A built-in workload. */
export interface Scenario {
  readonly name: string;
  /** What it shows, in a line. */
  readonly about: string;
  readonly workload: (random: Random) => Workload;
}

const seconds = 1000;
const minutes = 60 * seconds;
const hours = 60 * minutes;
const interactive = 100;
const normal = 0;
const batch = -100;

/** What comes with `npm run simulate`. */
export const scenarios: readonly Scenario[] = [
  {
    name: 'film-day',
    about:
      '174 shots of one film at once, a second film of 20 an hour later, a chat about every 5 minutes',
    workload: (random) => ({
      arrivals: [
        ...many(174, { ...item('film-a', batch, 250), model: 'video' }, 0),
        ...many(20, { ...item('film-b', batch, 250), model: 'video' }, hours),
        ...chats(random, {
          members: 1,
          meanGapMs: 5 * minutes,
          runSeconds: 20,
          untilMs: 16 * hours,
        }),
      ],
      chains: [],
      swapMs: 30 * seconds,
    }),
  },
  {
    name: 'unequal-sizes',
    about: 'one member with 960 s jobs against one with 60 s jobs, both with a backlog',
    workload: () => ({
      arrivals: [
        ...many(60, item('long', normal, 960), 0),
        ...many(960, item('short', normal, 60), 0),
      ],
      chains: [],
      swapMs: 0,
      stopMs: 20 * hours,
    }),
  },
  {
    name: 'one-at-a-time',
    about:
      'a producer that sends its next 60 s job when the last has ended, against a backlog of 960 s jobs',
    workload: () => ({
      arrivals: many(200, item('backlog', normal, 960), 0),
      chains: [chain(3000, item('producer', normal, 60))],
      swapMs: 0,
      stopMs: 40 * hours,
    }),
  },
  {
    name: 'ripening',
    about: '10 members with 20 batch shots each that have waited together, and chats at 80 % load',
    workload: (random) => ({
      arrivals: [
        ...Array.from({ length: 10 }, (_, index) =>
          many(20, item(`film-${index + 1}`, batch, 240), 0),
        ).flat(),
        ...chats(random, {
          members: 3,
          meanGapMs: 25 * seconds,
          runSeconds: 20,
          untilMs: 20 * hours,
        }),
      ],
      chains: [],
      swapMs: 0,
      stopMs: 20 * hours,
    }),
  },
  {
    name: 'saturated',
    about: 'chats that never let the GPU go idle, and one batch job of a max member',
    workload: () => ({
      arrivals: [
        { ...item('film', batch, 240), tier: 'max', atMs: 0 },
        ...Array.from({ length: 10 }, (_, index) =>
          many(120, item(`chat-${index + 1}`, interactive, 20), 0),
        ).flat(),
      ],
      chains: [],
      swapMs: 0,
      stopMs: 5 * hours,
    }),
  },
  {
    name: 'tiers',
    about: 'nine members of three tiers at 90 % load in one band',
    workload: (random) => ({
      arrivals: tieredChats(random, 60 * hours),
      chains: [],
      swapMs: 0,
    }),
  },
  {
    name: 'alternating',
    about: 'one member, 40 jobs that alternate between two models, all waiting together',
    workload: () => ({
      arrivals: Array.from({ length: 40 }, (_, index) => ({
        ...item('member', normal, 10),
        model: index % 2 === 0 ? 'a' : 'b',
        atMs: 0,
      })),
      chains: [],
      swapMs: 40 * seconds,
    }),
  },
];

function item(member: string, base: number, runSeconds: number): WorkItem {
  return { member, tier: 'free', base, model: 'chat', runMs: runSeconds * seconds };
}

function many(count: number, work: WorkItem, atMs: number): Arrival[] {
  return Array.from({ length: count }, () => ({ ...work, atMs }));
}

function chain(count: number, work: WorkItem): Chain {
  return { atMs: 0, gapMs: 200, items: Array.from({ length: count }, () => work) };
}

function chats(
  random: Random,
  shape: { members: number; meanGapMs: number; runSeconds: number; untilMs: number },
): Arrival[] {
  const arrivals: Arrival[] = [];
  for (
    let atMs = random.gap(shape.meanGapMs);
    atMs < shape.untilMs;
    atMs += random.gap(shape.meanGapMs)
  ) {
    const member = `chat-${random.whole(1, shape.members)}`;
    arrivals.push({ ...item(member, interactive, shape.runSeconds), atMs });
  }
  return arrivals;
}

function tieredChats(random: Random, untilMs: number): Arrival[] {
  const tiers = ['free', 'free', 'free', 'free', 'pro', 'pro', 'pro', 'max', 'max', 'max'] as const;
  const arrivals: Arrival[] = [];
  for (let atMs = random.gap(20_000); atMs < untilMs; atMs += random.gap(20_000)) {
    const tier = random.pick(tiers);
    const member = `${tier}-${random.whole(1, 3)}`;
    const runSeconds = random.whole(2, 34);
    arrivals.push({ ...item(member, interactive, runSeconds), tier, atMs });
  }
  return arrivals;
}
