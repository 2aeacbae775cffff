import type { DemoModel } from './catalogue.ts';

/** How many requests each model has, waiting and running, against a limit. Models of peers are not limited. */
export class Admission {
  readonly #limit: number;
  readonly #counts = new Map<string, number>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Takes a place; the function returned gives it back (again does nothing). Undefined: the model has no place left. */
  enter(model: DemoModel): (() => void) | undefined {
    if (model.peerId !== undefined) return () => undefined;
    const count = this.#counts.get(model.id) ?? 0;
    if (count >= this.#limit) return undefined;
    this.#counts.set(model.id, count + 1);
    let isIn = true;
    return () => {
      if (isIn) this.#counts.set(model.id, (this.#counts.get(model.id) ?? 1) - 1);
      isIn = false;
    };
  }
}
