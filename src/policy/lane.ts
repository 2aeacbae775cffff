import { headOfLane, type Head, type LaneView } from './dispatch.ts';
import type { Weighing } from './effective-priority.ts';
import { Fronts } from './fronts.ts';
import type { MemberId } from './job.ts';
import type { LaneBooks } from './transitions.ts';

/** One member's waiting jobs in one band, with their books. */
export class Lane implements LaneView {
  readonly member: MemberId;
  startTagMs = 0;
  passedMs = 0;
  /** Jobs that wait here, those in backoff included; the lane lasts as long as there is one. */
  waiting = 0;
  /** The jobs of it that may run. */
  readonly fronts = new Fronts();

  constructor(member: MemberId, books: LaneBooks) {
    this.member = member;
    this.books = books;
  }

  /** S, and what passed it over. */
  get books(): LaneBooks {
    return { startTagMs: this.startTagMs, passedMs: this.passedMs };
  }

  set books(books: LaneBooks) {
    this.startTagMs = books.startTagMs;
    this.passedMs = books.passedMs;
  }

  /** The job it would run; undefined while all its jobs are in backoff. */
  head(weighing: Weighing): Head | undefined {
    return headOfLane(this, this.fronts, weighing);
  }
}
