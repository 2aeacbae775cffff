import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../test/support/eventually.ts';
import type { BenchModelServer } from './model-server.ts';

const RUN_MS = 3;
const ANSWER = JSON.stringify({
  choices: [{ message: { role: 'assistant', content: 'y'.repeat(400) } }],
});

/**
 * The GPU as one queue's worker sees it. A job runs 3 ms; while it runs the next one is submitted, so the backlog
 * stays as it is. Between measurements it holds the job it has.
 */
export class GapGpu {
  private readonly gaps: number[] = [];
  private endedAt: number | undefined;
  private wanted = 0;
  private held: (() => void) | undefined;
  private failure: unknown;
  private model: string | undefined;
  private readonly keepFilled: () => Promise<void>;
  private readonly runMs: number;

  /** `keepFilled` is called once per job, while it runs, and awaited. */
  constructor(
    server: BenchModelServer,
    lane: string,
    keepFilled: () => Promise<void>,
    runMs = RUN_MS,
  ) {
    this.keepFilled = keepFilled;
    this.runMs = runMs;
    server.answer(lane, async (request, response) => this.run(request, response));
  }

  /** Whether a job is being held. */
  get isHolding(): boolean {
    return this.held !== undefined;
  }

  /** The model that the job at hand wants; the job may have ended meanwhile. */
  get modelAtHand(): string | undefined {
    return this.model;
  }

  /** Lets jobs run until `count` gaps were seen, in ms each: end of an answer to arrival of the next request. */
  async measure(count: number): Promise<number[]> {
    await eventually(() => this.isHolding, { timeoutMs: 10_000, what: 'a job to be held' });
    this.gaps.length = 0;
    this.endedAt = undefined;
    this.wanted = count;
    this.held?.();
    await eventually(
      () => {
        if (this.failure !== undefined)
          throw new Error('a submission failed', { cause: this.failure });
        return this.isHolding && this.gaps.length >= count;
      },
      { timeoutMs: 60_000, everyMs: 50, what: `${count} gaps` },
    );
    return this.gaps.slice(0, count);
  }

  /** Lets the held job end and every later one too, for good. */
  release(): void {
    this.wanted = Infinity;
    this.held?.();
  }

  private async run(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const arrivedAt = performance.now();
    if (this.endedAt !== undefined) this.gaps.push(arrivedAt - this.endedAt);
    this.model = String(request.headers['x-bench-model']);
    request.resume();
    await once(request, 'end');
    await this.keepFilled().catch((error: unknown) => (this.failure = error));
    if (this.gaps.length >= this.wanted) {
      await new Promise<void>((resolve) => (this.held = resolve));
      this.held = undefined;
    }
    await sleep(this.runMs);
    response.setHeader('content-type', 'application/json');
    this.endedAt = performance.now();
    response.end(ANSWER);
  }
}
