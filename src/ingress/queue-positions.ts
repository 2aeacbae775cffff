import type { EtaSeconds, QueueView } from '../gateway/queue-view.ts';

/** Where a job stands, as its client may be told. */
export interface QueuePlace {
  /** 1: next; undefined: it runs. May rise when better jobs arrive. */
  position: number | undefined;
  /** Until its answer is complete. */
  eta: EtaSeconds;
}

/** Least time between two readings of the plan, in ms, and how many times its cost it has to last. */
const LEAST_MS = 1000;
const REST_FACTOR = 20;

/** Places of jobs from the published plan, read once for all who ask at about the same time. */
export class QueuePositions {
  private readonly plan: () => Promise<string | undefined>;
  private readonly leastMs: number;
  private places: Promise<Map<string, QueuePlace>> | undefined;
  private freshUntil = 0;

  /** @param plan the published plan, JSON */
  constructor(plan: () => Promise<string | undefined>, leastMs = LEAST_MS) {
    this.plan = plan;
    this.leastMs = leastMs;
  }

  /** Where a job stands; undefined when no plan names it yet or none can be read. */
  async of(jobId: string): Promise<QueuePlace | undefined> {
    if (this.places === undefined || performance.now() >= this.freshUntil) {
      this.freshUntil = Infinity;
      this.places = this.read();
    }
    return (await this.places).get(jobId);
  }

  private async read(): Promise<Map<string, QueuePlace>> {
    const places = new Map<string, QueuePlace>();
    let costMs = 0;
    try {
      const json = await this.plan();
      const startedAt = performance.now();
      if (json !== undefined) {
        const { running, waiting } = JSON.parse(json) as QueueView;
        for (const { id, position, eta_seconds: eta } of waiting)
          if (id !== null) places.set(id, { position, eta });
        if (running !== null && running.id !== null)
          places.set(running.id, { position: undefined, eta: running.eta_seconds });
      }
      costMs = performance.now() - startedAt;
    } catch {
      // A sign of life without a position is still one.
    }
    this.freshUntil = performance.now() + Math.max(this.leastMs, costMs * REST_FACTOR);
    return places;
  }
}
