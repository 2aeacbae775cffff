import type { Random } from '../../src/simulate/random.ts';
import { scenarios } from '../../src/simulate/scenarios.ts';
import type { Arrival, Chain, WorkItem } from '../../src/simulate/workload.ts';
import type { DayArrival, DayWorkload } from './day-play.ts';

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

function work(member: string, base: number, runSeconds: number, model = 'model'): WorkItem {
  return { member, tier: 'free', base, model, runMs: runSeconds * second };
}

function many(count: number, item: WorkItem, atMs = 0): Arrival[] {
  return Array.from({ length: count }, () => ({ ...item, atMs }));
}

/** The built-in scenario of that name. */
export function builtIn(name: string, random: Random): DayWorkload {
  const scenario = scenarios.find((each) => each.name === name);
  if (scenario === undefined) throw new RangeError(`no scenario is called ${name}`);
  return scenario.workload(random);
}

/** The first hours of the built-in day with a film, but for its second film, which is equal to the first. */
export function filmHours(random: Random, hours: number): DayWorkload {
  const day = builtIn('film-day', random);
  const isFirst = ({ member }: WorkItem): boolean => member === 'film-a';
  const first = day.arrivals.filter(isFirst);
  const second = first.map((shot) => ({ ...shot, member: 'film-b', atMs: hour }));
  const chats = day.arrivals.filter(({ base }) => base > 0);
  return { ...day, arrivals: [...first, ...second, ...chats], stopMs: hours * hour };
}

/** Two films of 40 shots each that come together, and a chat every five minutes. */
export function twoFilms(): DayWorkload {
  return {
    arrivals: [
      ...many(40, work('one', -100, 240, 'video')),
      ...many(40, work('other', -100, 240, 'video')),
      ...Array.from({ length: 60 }, (_, index) => ({
        ...work('chat', 100, 20, 'chat'),
        atMs: index * 5 * minute,
      })),
    ],
    chains: [],
    swapMs: 30 * second,
  };
}

/** When the next render after so many begins if each side has its half and the GPU stands still between images. */
const afterRenders = (renders: number, idleMs = 0): number =>
  renders * 960 * (2 * second + idleMs / 10);

/** 16-minute renders against a growing backlog of 10-second images, until the render after so many has begun. */
export function rendersAgainstBacklog(renders: number): DayWorkload {
  return {
    arrivals: [
      ...many(renders + 2, work('video', 0, 960)),
      ...many(60, work('image', 0, 10)),
      ...Array.from({ length: renders * 110 }, (_, index) => ({
        ...work('image', 0, 10),
        atMs: index * 15 * second,
      })),
    ],
    chains: [],
    swapMs: 0,
    stopMs: afterRenders(renders) + minute,
  };
}

/** What a client needs from an answer to its next request, real milliseconds. */
const turnAroundMs = 40;

/**
 * 16-minute renders that wait together against a producer of 10-second images that sends one at a time, on a day that
 * passes `factor` times as fast. The renders come while a first, longer image runs: a producer is known by the second job.
 */
export function rendersAgainstProducer(renders: number, factor: number): DayWorkload {
  const images: Chain = {
    atMs: 0,
    gapMs: turnAroundMs * factor,
    items: [
      work('image', 0, 60),
      ...Array.from({ length: (renders + 1) * 100 }, () => work('image', 0, 10)),
    ],
  };
  return {
    arrivals: many(renders + 2, work('video', 0, 960), 5 * second),
    chains: [images],
    swapMs: 0,
    stopMs: afterRenders(renders, turnAroundMs * factor) + 2 * minute,
  };
}

/** One member: jobs of 20 s at base 100, three of which always wait, and one at 60 before them. */
export function streamAndStraggler(): DayWorkload {
  return {
    arrivals: [
      ...many(1, work('m', 60, 20)),
      ...many(4, work('m', 100, 20)),
      ...Array.from({ length: 130 }, (_, index) => ({
        ...work('m', 100, 20),
        atMs: (index + 1) * 20 * second,
      })),
    ],
    chains: [],
    swapMs: 0,
  };
}

/** What members of mort ask for: how it is said, how long it takes and how often it comes. */
interface Kind {
  readonly intent: string;
  readonly base: number;
  readonly model: string;
  /** Least and most. */
  readonly seconds: readonly [number, number];
  readonly weight: number;
}

const kinds: readonly [Kind, ...Kind[]] = [
  { intent: 'chat', base: 100, model: 'chat', seconds: [3, 15], weight: 10 },
  { intent: 'image', base: 100, model: 'image', seconds: [8, 25], weight: 4 },
  { intent: 'video', base: 100, model: 'video', seconds: [60, 240], weight: 0.25 },
  { intent: 'skill', base: 0, model: 'chat', seconds: [5, 20], weight: 5 },
  { intent: 'scheduled', base: -100, model: 'chat', seconds: [10, 30], weight: 2 },
  { intent: 'standing-query', base: -100, model: 'chat', seconds: [5, 20], weight: 2 },
  { intent: 'film-shot', base: -100, model: 'video', seconds: [120, 250], weight: 0.2 },
];

/** When the burst of mort's hour comes: all else has run by then. */
export const burstAtMs = 70 * minute;

/**
 * An hour of 30 members of three tiers, by intents; every intent and tier occurs. When it is over, 200 of their
 * requests for one model come at once.
 */
export function mortHour(random: Random, meanGapSeconds = 20): DayWorkload {
  const tiers = ['free', 'pro', 'max'] as const;
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  const arrivals: DayArrival[] = [];
  const ask = (atMs: number, kind: Kind): void => {
    const index = random.whole(1, 30);
    const tier = tiers[index % 3] ?? 'free';
    const member = `member-${index}`;
    arrivals.push({
      ...work(member, kind.base, random.whole(kind.seconds[0], kind.seconds[1]), kind.model),
      tier,
      atMs,
      headers: {
        'x-berth-intent': kind.intent,
        'x-berth-member': member,
        'x-berth-tier': tier,
      },
    });
  };
  for (const kind of kinds) ask(0, kind);
  for (let atMs = 0; atMs < hour; atMs += random.gap(meanGapSeconds * second)) {
    let left = random.next() * total;
    const kind = kinds.find(({ weight }) => (left -= weight) < 0) ?? kinds[0];
    ask(atMs, kind);
  }
  const [chat] = kinds;
  for (let count = 0; count < 200; count += 1) ask(burstAtMs, { ...chat, seconds: [2, 2] });
  return { arrivals, chains: [], swapMs: 15 * second };
}
