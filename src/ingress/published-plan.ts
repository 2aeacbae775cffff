import type { EtaSeconds, QueueView } from '../gateway/queue-view.ts';

/** Where a job stands, as its client may be told. */
export interface QueuePlace {
  /** 1: next; undefined: it runs. May rise when better jobs arrive. */
  position: number | undefined;
  /** Until its answer is complete. */
  eta: EtaSeconds;
}

interface ReadPlan {
  view: QueueView | undefined;
  places: Map<string, QueuePlace>;
}

/** Least time between two readings of the plan, in ms, and how many times its cost it has to last. */
const LEAST_MS = 1000;
const REST_FACTOR = 20;

/** The published plan, read once for all who ask at about the same time. */
export class PublishedPlan {
  private readonly plan: () => Promise<string | undefined>;
  private readonly leastMs: number;
  private lastRead: Promise<ReadPlan> | undefined;
  private freshUntil = 0;

  /** @param plan the published plan, JSON */
  constructor(plan: () => Promise<string | undefined>, leastMs = LEAST_MS) {
    this.plan = plan;
    this.leastMs = leastMs;
  }

  /** Where a job stands; undefined when no plan names it yet or none can be read. */
  async of(jobId: string): Promise<QueuePlace | undefined> {
    return (await this.current()).places.get(jobId);
  }

  /** All of it; undefined when there is none, or it cannot be read. */
  async view(): Promise<QueueView | undefined> {
    return (await this.current()).view;
  }

  private async current(): Promise<ReadPlan> {
    if (this.lastRead === undefined || performance.now() >= this.freshUntil) {
      this.freshUntil = Infinity;
      this.lastRead = this.read();
    }
    return this.lastRead;
  }

  private async read(): Promise<ReadPlan> {
    let read: ReadPlan = { view: undefined, places: new Map() };
    let costMs = 0;
    try {
      const json = await this.plan();
      const startedAt = performance.now();
      if (json !== undefined) read = readPlan(json);
      costMs = performance.now() - startedAt;
    } catch {
      // A sign of life without a position is still one.
    }
    this.freshUntil = performance.now() + Math.max(this.leastMs, costMs * REST_FACTOR);
    return read;
  }
}

function readPlan(json: string): ReadPlan {
  const view = JSON.parse(json) as QueueView;
  const places = new Map<string, QueuePlace>();
  const { running, waiting } = view;
  for (const { id, position, eta_seconds: eta } of waiting)
    if (id !== null) places.set(id, { position, eta });
  if (running !== null && running.id !== null)
    places.set(running.id, { position: undefined, eta: running.eta_seconds });
  return { view, places };
}
