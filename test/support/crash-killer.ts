import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/simulate/random.ts';
import type { BerthSystem } from './berth-system.ts';
import type { CrashHistory, Victim } from './crash-history.ts';

/** Of ten kills, whom they hit. */
const TARGETS: readonly [Victim, ...Victim[]] = [
  ...([
    'gpu',
    'gpu',
    'gpu',
    'gpu',
    'redis',
    'redis',
    'redis',
    'ingress',
    'ingress',
    'scorer',
  ] as const),
];
/** Chance that another dies at the same moment. */
const TWO = 0.25;
/** Longest a victim stays dead, in ms. */
const DEAD_MS = 300;
/** After how many answers of the model server the next one dies: 0 while the last one starts. In ms at the latest. */
const MOST_ANSWERS = 30;
const NONE = 0.2;
const LONGEST_LIFE_MS = 6000;

/** Kills processes of a system with SIGKILL, also while they start, and starts them again, all of it on record. */
export class CrashKiller {
  private readonly system: BerthSystem;
  private readonly history: CrashHistory;
  /** Those that are dead, or may be. */
  private readonly killed = new Set<Victim>();

  constructor(system: BerthSystem, history: CrashHistory) {
    this.system = system;
    this.history = history;
    for (const victim of ['ingress', 'gpu', 'scorer'] as const) this.watch(victim);
  }

  /** Kills whom chance hits, as long as `forMs`; everything has been started again afterwards. */
  async atRandom(random: Random, forMs: number): Promise<void> {
    const untilMs = performance.now() + forMs;
    while (performance.now() < untilMs) {
      const victims = new Set([random.pick(TARGETS)]);
      if (random.next() < TWO) victims.add(random.pick(TARGETS));
      await this.killAndStart([...victims], random.whole(0, DEAD_MS));
      const answers = random.next() < NONE ? 0 : random.whole(1, MOST_ANSWERS);
      await this.live(answers, Math.min(untilMs, performance.now() + LONGEST_LIFE_MS));
    }
  }

  private async live(answers: number, untilMs: number): Promise<void> {
    const given = (): number => this.history.answers;
    const enough = given() + answers;
    await sleep(100);
    while (given() < enough && performance.now() < untilMs) await sleep(10);
  }

  /** Kills all of them, then starts one after the other. */
  async killAndStart(victims: readonly Victim[], deadMs = 0): Promise<void> {
    await Promise.all(victims.map(async (victim) => this.kill(victim)));
    await sleep(deadMs);
    for (const victim of victims) await this.start(victim);
  }

  /** From now on processes may end. */
  rest(): void {
    for (const victim of ['ingress', 'gpu', 'scorer'] as const) this.killed.add(victim);
  }

  private async kill(victim: Victim): Promise<void> {
    this.killed.add(victim);
    this.history.record({ kind: 'kill', victim });
    const { redis, processes } = this.system;
    await (victim === 'redis' ? redis.kill('SIGKILL') : processes[victim]?.kill('SIGKILL'));
  }

  private async start(victim: Victim): Promise<void> {
    this.history.record({ kind: 'start', victim });
    this.killed.delete(victim);
    if (victim === 'redis') {
      await this.system.redis.restart();
      return;
    }
    // Rejects when it is killed before it listens, which is no fault; that it ended by itself is seen below.
    this.system.startProcess(victim).catch(() => undefined);
    this.watch(victim);
  }

  private watch(victim: Exclude<Victim, 'redis'>): void {
    const watched = this.system.processes[victim];
    watched?.child.once('exit', () => {
      const isExpected = this.killed.has(victim) || this.system.processes[victim] !== watched;
      if (!isExpected) this.history.record({ kind: 'ended-by-itself', victim });
    });
  }
}
