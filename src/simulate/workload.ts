/** A job of a workload, before it arrives. */
export interface WorkItem {
  readonly member: string;
  readonly tier: string;
  /** Base priority in points. */
  readonly base: number;
  readonly model: string;
  /** GPU time it takes with its model resident, whole milliseconds. */
  readonly runMs: number;
}

/** A job that arrives by itself. */
export interface Arrival extends WorkItem {
  /** Milliseconds after the start of the simulation. */
  readonly atMs: number;
}

/** A producer that sends its next job only when the last one has ended. */
export interface Chain {
  /** When it sends its first job, milliseconds after the start. */
  readonly atMs: number;
  /** From the end of one job to the arrival of the next. */
  readonly gapMs: number;
  readonly items: readonly WorkItem[];
}

/** Everything that comes to the GPU. */
export interface Workload {
  readonly arrivals: readonly Arrival[];
  readonly chains: readonly Chain[];
  /** Time to load another model, whole milliseconds. */
  readonly swapMs: number;
  /** When to stop, milliseconds after the start; absent: when everything has run. */
  readonly stopMs?: number;
}
