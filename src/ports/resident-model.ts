/** What is in GPU memory, or is being loaded into it. */
export interface Residents {
  /** Whether the model server says so itself; false: it cannot be read, and `models` is a guess. */
  readonly isKnown: boolean;
  /**
   * Canonical ids, the last used first: models that are ready or starting, not stopping ones. Empty and known: none is
   * loaded. Not known: the last dispatched model alone, or nothing before the first dispatch.
   */
  readonly models: readonly string[];
}

/** A load of a model that has come to its end. */
export interface ModelSwap {
  /** Canonical id. */
  readonly model: string;
  /** From its start to the model being ready; at most that, where the start was not seen. */
  readonly swappedMs: number;
}

/**
 * Which model the next job would find in GPU memory. The model server may hold several (llama-swap's groups and
 * matrix); the policy asks for one, so `current` is the last used of them. Models that need no GPU here (of peers, or
 * configured to bypass it) never count.
 */
export interface ResidentModel {
  /** Canonical id of the model a job would find, else null: none is loaded, or nobody knows (`residents` tells which). */
  current(): string | null;
  /** All of them. */
  residents(): Residents;
  /** Whether a job for this id (any name of the model) would find it loaded. */
  isResident(modelId: string): boolean;
  /** A job for this model goes upstream now: it will be resident whether or not the model server can be read. */
  noteDispatched(modelId: string): void;
  /** Calls `listener` after each change of `residents`; the function returned ends that. */
  onChange(listener: () => void): () => void;
  /** Calls `listener` once for each load that ended well; the function returned ends that. */
  onSwap(listener: (swap: ModelSwap) => void): () => void;
}
