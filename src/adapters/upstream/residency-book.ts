import type { ModelSwap, Residents } from '../../ports/resident-model.ts';

/** One model's process as the model server tells of it. */
export interface ModelProcess {
  /** Canonical id. */
  readonly model: string;
  readonly state: string;
}

/** How long a dispatched model that no reading shows is believed to be on its way, in ms. */
const EXPECTED_MS = 2_000;

/**
 * What is known of the models in GPU memory, put together from readings and dispatches; times are monotonic ms.
 *
 * States: unknown (at the start, after `lost`) -> known (a reading) -> unknown …
 * - known: the models that are ready or starting; a model dispatched after the last reading counts too, until a reading
 *   shows it, or one shows it absent 2 s later with no other model still stopping.
 * - unknown: the last dispatched model is taken to be resident; before any dispatch, nothing is.
 *
 * A swap is counted when a model becomes ready that was not so in the reading before; the first reading after unknown
 * counts none. Its time runs from where it was seen starting, else from its dispatch or the reading before.
 */
export class ResidencyBook {
  private states: ReadonlyMap<string, string> | undefined;
  private isStopping = false;
  private readAtMs = 0;
  private readonly startedAtMs = new Map<string, number>();
  /** When each loaded model was last used: dispatched, or begun to load. */
  private readonly usedAt = new Map<string, number>();
  private uses = 0;
  private lastDispatched: string | null = null;
  private expected: { model: string; atMs: number } | undefined;

  residents(): Residents {
    if (this.states === undefined)
      return { isKnown: false, models: this.lastDispatched === null ? [] : [this.lastDispatched] };
    const models = [...this.states.keys()];
    const { expected } = this;
    if (expected !== undefined && !models.includes(expected.model)) models.push(expected.model);
    const used = (model: string): number => this.usedAt.get(model) ?? 0;
    return {
      isKnown: true,
      models: models.toSorted((a, b) => used(b) - used(a) || (a < b ? -1 : 1)),
    };
  }

  /** Whether a load is expected or under way. */
  get isSettling(): boolean {
    return this.expected !== undefined || this.startedAtMs.size > 0;
  }

  dispatched(model: string, nowMs: number): void {
    this.lastDispatched = model;
    this.use(model);
    this.expected = this.states?.has(model) === true ? undefined : { model, atMs: nowMs };
  }

  /** A reading; returns the loads that ended since the one before. */
  read(processes: readonly ModelProcess[], nowMs: number): ModelSwap[] {
    const before = this.states;
    const states = new Map(
      processes
        .filter(({ state }) => state === 'ready' || state === 'starting')
        .map(({ model, state }) => [model, state]),
    );
    const swaps: ModelSwap[] = [];
    for (const [model, state] of states) {
      if (before !== undefined && !before.has(model)) this.use(model);
      if (state === 'starting') {
        if (!this.startedAtMs.has(model)) this.startedAtMs.set(model, nowMs);
      } else if (before !== undefined && before.get(model) !== 'ready') {
        const startedMs = this.startedAtMs.get(model) ?? this.latestStart(model);
        swaps.push({ model, swappedMs: Math.max(0, Math.round(nowMs - startedMs)) });
      }
      if (state === 'ready') this.startedAtMs.delete(model);
    }
    this.states = states;
    this.isStopping = processes.some(({ state }) => state === 'stopping');
    this.readAtMs = nowMs;
    this.forget(nowMs);
    return swaps;
  }

  /** The model server cannot be read. */
  lost(): void {
    this.states = undefined;
    this.startedAtMs.clear();
  }

  private latestStart(model: string): number {
    const dispatchedMs = this.expected?.model === model ? this.expected.atMs : 0;
    return Math.max(dispatchedMs, this.readAtMs);
  }

  private use(model: string): void {
    this.uses += 1;
    this.usedAt.set(model, this.uses);
  }

  private forget(nowMs: number): void {
    const isLoaded = (model: string): boolean => this.states?.has(model) === true;
    const { expected } = this;
    if (expected !== undefined) {
      const isLate = !this.isStopping && nowMs - expected.atMs > EXPECTED_MS;
      if (isLoaded(expected.model) || isLate) this.expected = undefined;
    }
    for (const model of this.startedAtMs.keys())
      if (!isLoaded(model)) this.startedAtMs.delete(model);
    for (const model of this.usedAt.keys())
      if (!isLoaded(model) && model !== this.lastDispatched) this.usedAt.delete(model);
  }
}
