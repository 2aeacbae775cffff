import type { Head } from './dispatch.ts';
import type { Weighing } from './effective-priority.ts';
import type { Lane } from './lane.ts';

/**
 * The heads of a band's lanes, worked out again only where something changed: a lane that was touched, or
 * all of them when another model becomes resident.
 */
export class Heads {
  readonly #heads: Head[] = [];
  readonly #lanes: Lane[] = [];
  readonly #places = new Map<Lane, number>();
  readonly #touched = new Set<Lane>();
  #residentModel: string | null = null;

  /** A lane has other jobs now, or is closed. */
  touch(lane: Lane): void {
    this.#touched.add(lane);
  }

  /** The heads, in no order that matters; to be read before the next change. */
  read(weighing: Weighing): readonly Head[] {
    if (weighing.residentModel !== this.#residentModel) {
      this.#residentModel = weighing.residentModel;
      for (const lane of this.#lanes) this.#touched.add(lane);
    }
    for (const lane of this.#touched) this.#place(lane, lane.head(weighing));
    this.#touched.clear();
    return this.#heads;
  }

  #place(lane: Lane, head: Head | undefined): void {
    const place = this.#places.get(lane) ?? this.#lanes.length;
    if (head !== undefined) {
      this.#heads[place] = head;
      this.#lanes[place] = lane;
      this.#places.set(lane, place);
    } else if (this.#places.delete(lane)) {
      this.#fillFromEnd(place);
    }
  }

  #fillFromEnd(place: number): void {
    const head = this.#heads.pop();
    const lane = this.#lanes.pop();
    if (head === undefined || lane === undefined || place === this.#lanes.length) return;
    this.#heads[place] = head;
    this.#lanes[place] = lane;
    this.#places.set(lane, place);
  }
}
