/**
 * Which model is in GPU memory.
 *
 * States of the one place: empty -> starting -> ready -> (stopping) -> starting …
 * - A request for the ready model runs at once, however many others run or wait.
 * - A request for another model waits until everything that runs has ended; then the ready model is unloaded and
 *   the wanted one loads, and all that wait for it start together.
 * - A waiter that leaves is forgotten; a load already begun for it goes on.
 * - An unload asked for from outside does not wait: what runs is cut, what waits is refused.
 */

/** Life of one model's process, in the words of `/running`; `stopped` is not listed there. */
export type ModelState = 'stopped' | 'starting' | 'ready' | 'stopping';

/** Thrown into requests whose model was unloaded from outside while they waited or ran. */
export class ModelUnloadedError extends Error {
  override readonly name = 'ModelUnloadedError';
  constructor() {
    super('group: model unloaded');
  }
}

/** The right to run on the resident model; `release` it exactly when the work ends (again does nothing). */
export interface ResidencyLease {
  /** Aborts with ModelUnloadedError when the model is unloaded under the work. */
  readonly unloaded: AbortSignal;
  release(): void;
}

interface Waiter {
  readonly modelId: string;
  readonly grant: (lease: ResidencyLease) => void;
  readonly refuse: (error: Error) => void;
}

/** The one place in GPU memory and everybody who wants it. */
export class Residency {
  readonly #loadMs: number;
  readonly #onChange: (modelId: string, state: ModelState) => void;
  readonly #running = new Set<AbortController>();
  #waiters: Waiter[] = [];
  #modelId: string | null = null;
  #state: ModelState = 'stopped';
  #loading: NodeJS.Timeout | undefined;
  #loads = 0;
  #swaps = 0;

  /** `loadMs`: how long a cold load takes; `onChange` is called after each change of a model's state. */
  constructor(loadMs: number, onChange: (modelId: string, state: ModelState) => void) {
    this.#loadMs = loadMs;
    this.#onChange = onChange;
  }

  /** Loads begun so far. */
  get loads(): number {
    return this.#loads;
  }

  /** Loads that pushed another model out. */
  get swaps(): number {
    return this.#swaps;
  }

  /** The model that is ready, or null while none is. */
  get resident(): string | null {
    return this.#state === 'ready' ? this.#modelId : null;
  }

  stateOf(modelId: string): ModelState {
    return modelId === this.#modelId ? this.#state : 'stopped';
  }

  /** Waits for the model; rejects with the signal's reason, or ModelUnloadedError. */
  acquire(modelId: string, signal: AbortSignal): Promise<ResidencyLease> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        reject(signal.reason as Error);
        this.#serve();
      };
      const settled = (): void => signal.removeEventListener('abort', leave);
      const waiter: Waiter = {
        modelId,
        grant: (lease) => {
          settled();
          resolve(lease);
        },
        refuse: (error) => {
          settled();
          reject(error);
        },
      };
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      signal.addEventListener('abort', leave, { once: true });
      this.#waiters.push(waiter);
      this.#serve();
    });
  }

  /** Stops the named model, or whichever is loaded; does nothing when that one is not loaded. */
  unload(modelId?: string): void {
    if (this.#modelId === null || (modelId ?? this.#modelId) !== this.#modelId) return;
    const refused = this.#waiters.filter(
      (waiter) => modelId === undefined || waiter.modelId === modelId,
    );
    this.#waiters = this.#waiters.filter((waiter) => !refused.includes(waiter));
    const cut = [...this.#running];
    this.#running.clear();
    this.#stop();
    for (const running of cut) running.abort(new ModelUnloadedError());
    for (const waiter of refused) waiter.refuse(new ModelUnloadedError());
    this.#serve();
  }

  #serve(): void {
    if (this.#state === 'starting') return;
    if (this.#state === 'ready') {
      const wanted = this.#modelId;
      const served = this.#waiters.filter((waiter) => waiter.modelId === wanted);
      this.#waiters = this.#waiters.filter((waiter) => waiter.modelId !== wanted);
      for (const waiter of served) waiter.grant(this.#lease());
    }
    const next = this.#waiters[0];
    if (next === undefined || this.#running.size > 0) return;
    if (this.#modelId !== null) {
      this.#swaps += 1;
      this.#stop();
    }
    this.#start(next.modelId);
  }

  #start(modelId: string): void {
    this.#loads += 1;
    this.#modelId = modelId;
    this.#become(modelId, 'starting');
    this.#loading = setTimeout(() => {
      this.#become(modelId, 'ready');
      this.#serve();
    }, this.#loadMs).unref();
  }

  #stop(): void {
    const modelId = this.#modelId;
    if (modelId === null) return;
    clearTimeout(this.#loading);
    this.#become(modelId, 'stopping');
    this.#modelId = null;
    this.#become(modelId, 'stopped');
  }

  #become(modelId: string, state: ModelState): void {
    this.#state = state;
    this.#onChange(modelId, state);
  }

  #lease(): ResidencyLease {
    const controller = new AbortController();
    this.#running.add(controller);
    return {
      unloaded: controller.signal,
      release: () => {
        if (this.#running.delete(controller)) this.#serve();
      },
    };
  }
}
