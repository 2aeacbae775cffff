import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

/** One prompt as it waits or renders. */
export interface ComfyPrompt {
  readonly id: string;
  readonly number: number;
  readonly ms: number;
  readonly abort: AbortController;
  /** Called once when it no longer waits or renders, however that came. */
  readonly onOver: () => void;
}

/**
 * A pretended ComfyUI: prompts are taken at once and rendered one after the other; what became of each stands in the
 * history. Listeners hear of every step as the original tells it over its WebSocket.
 */
export class ComfyUi {
  readonly listeners = new Set<(message: string) => void>();
  #history = new Map<string, object>();
  #pending: ComfyPrompt[] = [];
  #running: ComfyPrompt | undefined;
  #count = 0;

  /** Takes a prompt that renders for `ms`; returns its id. */
  submit(ms: number, onOver: () => void): { id: string; number: number } {
    const number = this.#count;
    this.#count += 1;
    const prompt = { id: randomUUID(), number, ms, abort: new AbortController(), onOver };
    this.#pending.push(prompt);
    this.#status();
    void this.#next();
    return { id: prompt.id, number };
  }

  /** What ended, by id; one prompt alone when an id is given. Empty while it waits or renders. */
  history(id?: string): object {
    if (id === undefined) return Object.fromEntries(this.#history);
    const entry = this.#history.get(id);
    return entry === undefined ? {} : { [id]: entry };
  }

  /** What waits and renders. */
  queue(): object {
    const row = ({ number, id }: ComfyPrompt): unknown[] => [number, id, {}, {}, []];
    return {
      queue_running: this.#running === undefined ? [] : [row(this.#running)],
      queue_pending: this.#pending.map(row),
    };
  }

  /** How many wait and render. */
  remaining(): object {
    return { queue_remaining: this.#pending.length + (this.#running === undefined ? 0 : 1) };
  }

  /** Takes waiting prompts back; they leave no trace. */
  remove(isMeant: (id: string) => boolean): void {
    const removed = this.#pending.filter(({ id }) => isMeant(id));
    this.#pending = this.#pending.filter(({ id }) => !isMeant(id));
    for (const prompt of removed) prompt.onOver();
    this.#status();
  }

  /** Stops what renders, when it is the one that is meant. */
  interrupt(id?: string): void {
    if (id === undefined || id === this.#running?.id) this.#running?.abort.abort();
  }

  /** Its process ended: everything is lost, also what was done. */
  die(): void {
    const all = [...this.#pending, ...(this.#running === undefined ? [] : [this.#running])];
    this.#pending = [];
    this.#running?.abort.abort();
    this.#running = undefined;
    this.#history = new Map();
    for (const prompt of all) prompt.onOver();
  }

  async #next(): Promise<void> {
    if (this.#running !== undefined) return;
    const prompt = this.#pending.shift();
    if (prompt === undefined) return;
    this.#running = prompt;
    this.#tell('execution_start', { prompt_id: prompt.id });
    // A render that nobody can ask for any more keeps no process up.
    const rendered = sleep(prompt.ms, undefined, { signal: prompt.abort.signal, ref: false });
    const isDone = await rendered.then(
      () => true,
      () => false,
    );
    if (this.#running !== prompt) return; // Its process died under it.
    this.#running = undefined;
    this.#history.set(prompt.id, outcomeOf(prompt, isDone));
    this.#tell(isDone ? 'executing' : 'execution_interrupted', {
      node: null,
      prompt_id: prompt.id,
    });
    prompt.onOver();
    this.#status();
    void this.#next();
  }

  #status(): void {
    this.#tell('status', { status: { exec_info: this.remaining() } });
  }

  #tell(type: string, data: object): void {
    for (const listener of this.listeners) listener(JSON.stringify({ type, data }));
  }
}

function outcomeOf({ id, number }: ComfyPrompt, isDone: boolean): object {
  const image = { filename: `${id}.png`, subfolder: '', type: 'output' };
  const status = { status_str: isDone ? 'success' : 'error', completed: isDone, messages: [] };
  const outputs = isDone ? { '9': { images: [image] } } : {};
  return { prompt: [number, id, {}, {}, []], outputs, status };
}
