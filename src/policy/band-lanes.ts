import type { BandView, Head } from './dispatch.ts';
import { frontOf, type Weighing } from './effective-priority.ts';
import { Fronts } from './fronts.ts';
import { Heads } from './heads.ts';
import type { MemberId, WaitingJob } from './job.ts';
import { Lane } from './lane.ts';
import type { Rules } from './rules.ts';
import { openLane, rest, wakeBand, type BandBooks, type LaneBooks } from './transitions.ts';

/** One band in plain data, as it is kept and restored. Times in whole milliseconds. */
export interface BandState {
  readonly books: BandBooks;
  /** The books of each lane with waiting jobs. */
  readonly lanes: Readonly<Record<string, LaneBooks>>;
  /** F of each member that has run here since the band last had nothing to do. */
  readonly finishTagMs: Readonly<Record<string, number>>;
  /** Members whose last run left their lane empty, and when it ended. */
  readonly leftMs: Readonly<Record<string, number>>;
  /** Members whose next job came within `hold.seconds` the last time. */
  readonly prompt: readonly string[];
}

/** The lanes of one band and the band's books, in memory; its `Ledger` alone changes it. */
export class BandLanes implements BandView {
  readonly band: string;
  books: BandBooks = { clockMs: 0, lastEndMs: 0, virtualMs: 0 };
  readonly lanes = new Map<MemberId, Lane>();
  readonly fronts = new Fronts();
  readonly finishTagMs = new Map<MemberId, number>();
  readonly prompt = new Set<MemberId>();
  readonly #heads = new Heads();
  readonly #leftMs = new Map<MemberId, number>();
  readonly #rules: Rules;

  constructor(band: string, rules: Rules) {
    this.band = band;
    this.#rules = rules;
  }

  /** Takes up a band where `state` left it; its jobs are to be offered again. */
  static from(band: string, state: BandState, rules: Rules): BandLanes {
    const lanes = new BandLanes(band, rules);
    lanes.books = state.books;
    for (const [member, books] of entries(state.lanes)) {
      lanes.lanes.set(member, new Lane(member, books));
    }
    for (const [member, tag] of entries(state.finishTagMs)) lanes.finishTagMs.set(member, tag);
    for (const [member, leftMs] of entries(state.leftMs)) lanes.#leftMs.set(member, leftMs);
    for (const member of state.prompt) lanes.prompt.add(member as MemberId);
    return lanes;
  }

  /** The band in plain data. */
  state(): BandState {
    return {
      books: this.books,
      lanes: Object.fromEntries([...this.lanes].map(([member, lane]) => [member, lane.books])),
      finishTagMs: Object.fromEntries(this.finishTagMs),
      leftMs: Object.fromEntries(this.#leftMs),
      prompt: [...this.prompt],
    };
  }

  get clockMs(): number {
    return this.books.clockMs;
  }

  /** The least S of the lanes with waiting jobs; infinite when there is none. */
  get leastStartTagMs(): number {
    let least = Infinity;
    for (const lane of this.lanes.values()) if (lane.startTagMs < least) least = lane.startTagMs;
    return least;
  }

  /** Counts a job in that arrived: wakes the band and opens the lane where nothing waited. */
  enter(job: WaitingJob): void {
    if (this.lanes.size === 0) this.books = wakeBand(this.books, job.arrivalMs);
    const leftMs = this.#leftMs.get(job.member);
    if (leftMs !== undefined) this.#noteReturn(job, leftMs);
    this.lane(job.member).waiting += 1;
  }

  /** Counts a job out; the lane closes with its last one. Tells whether it did. */
  leave(job: WaitingJob): boolean {
    const lane = this.lane(job.member);
    lane.waiting -= 1;
    return lane.waiting === 0 && this.lanes.delete(job.member);
  }

  /** Closes the lanes in which nothing waits: of a state whose jobs were taken away unseen. */
  closeEmptyLanes(): void {
    for (const lane of this.lanes.values()) {
      if (lane.waiting === 0) this.lanes.delete(lane.member);
    }
  }

  /** Lets a job that was counted in run when its turn comes. */
  offer(job: WaitingJob): void {
    const { tierBonus } = frontOf(job, this.#rules);
    const lane = this.lane(job.member);
    lane.fronts.add(job, tierBonus);
    this.fronts.add(job, tierBonus);
    this.#heads.touch(lane);
  }

  /** Takes back what was offered: the job was dispatched or removed. */
  withdraw(job: WaitingJob): void {
    const lane = this.lane(job.member);
    lane.fronts.delete(job);
    this.fronts.delete(job);
    this.#heads.touch(lane);
  }

  /** Notes when a run of the member ended that left its lane empty. */
  noteLeaving(member: MemberId, nowMs: number): void {
    this.#leftMs.set(member, nowMs);
  }

  /** Nothing waits and nothing runs: V = 0, and every member starts equal again. */
  rest(): void {
    this.books = rest(this.books);
    this.finishTagMs.clear();
    this.prompt.clear();
    this.#leftMs.clear();
  }

  /**
   * Remembers what the end of a run, and the arrival of that member's next job, may change; calling the result puts it
   * back.
   *
   * @param member whose run it is
   * @param passedOver members whose lanes are charged for it
   */
  remember(member: MemberId, passedOver: readonly MemberId[]): () => void {
    const { books } = this;
    const lanes = [member, ...passedOver].flatMap((each) => {
      const lane = this.lanes.get(each);
      return lane === undefined ? [] : [{ lane, books: lane.books }];
    });
    // Only a band left with nothing to do forgets more than the one member's.
    const mayRest = this.lanes.size === 0;
    const finishTags = copyOf(this.finishTagMs, mayRest, member);
    const left = copyOf(this.#leftMs, mayRest, member);
    const prompt = mayRest ? [...this.prompt] : [];
    const wasPrompt = this.prompt.has(member);
    return () => {
      this.books = books;
      for (const { lane, books: laneBooks } of lanes) lane.books = laneBooks;
      putBack(this.finishTagMs, finishTags, member);
      putBack(this.#leftMs, left, member);
      for (const each of prompt) this.prompt.add(each);
      if (wasPrompt) this.prompt.add(member);
      else this.prompt.delete(member);
    };
  }

  heads(weighing: Weighing): readonly Head[] {
    if (weighing.without === null) return this.#heads.read(weighing);
    return [...this.lanes.values()].flatMap((lane) => lane.head(weighing) ?? []);
  }

  /** The member's lane, opened if there is none. */
  lane(member: MemberId): Lane {
    const lane = this.lanes.get(member);
    if (lane !== undefined) return lane;
    const opened = new Lane(member, openLane(this.books, this.finishTagMs.get(member)));
    this.lanes.set(member, opened);
    return opened;
  }

  #noteReturn(job: WaitingJob, leftMs: number): void {
    this.#leftMs.delete(job.member);
    if (job.arrivalMs - leftMs <= this.#rules.aging.hold.seconds * 1000)
      this.prompt.add(job.member);
    else this.prompt.delete(job.member);
  }
}

function copyOf<K, V>(map: ReadonlyMap<K, V>, whole: boolean, key: K): readonly [K, V][] {
  if (whole) return [...map];
  const value = map.get(key);
  return value === undefined ? [] : [[key, value]];
}

function putBack<K, V>(map: Map<K, V>, kept: readonly [K, V][], key: K): void {
  map.delete(key);
  for (const [each, value] of kept) map.set(each, value);
}

function entries<T>(record: Readonly<Record<string, T>>): [MemberId, T][] {
  return Object.entries(record) as [MemberId, T][];
}
