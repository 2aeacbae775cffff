import type { ServerResponse } from 'node:http';
import { GatewayError } from '../../errors.ts';
import type { ModelCatalogue } from '../../ports/model-server.ts';

/** What skips the queue, and how much of it at once. */
export interface BypassOptions {
  catalogue: Pick<ModelCatalogue, 'resolve' | 'isPeer'>;
  /** Models that need no GPU, by any of their names; models of peers need none anyway. */
  models: readonly string[];
  /** Requests upstream at one time. */
  concurrency: number;
  /** Requests that may wait for that; default 200. */
  lineLength?: number;
}

/** Seconds after which a client for whom the line was too long may try again. */
const RETRY_AFTER_SECONDS = 5;

interface Place {
  enter: () => void;
  refuse: (error: GatewayError) => void;
}

/**
 * Requests for models that need no GPU: they hold no place in the queue and are no jobs. A limited number goes upstream
 * at once, the others wait in line in this process, first come, first served; a client that leaves drops out of it.
 */
export class Bypass {
  private readonly options: BypassOptions;
  private readonly line = new Set<Place>();
  private running = 0;
  private isClosed = false;

  constructor(options: BypassOptions) {
    this.options = options;
  }

  /** Whether the model needs no GPU, as far as the model server's lists are known. */
  covers(modelId: string): boolean {
    const { catalogue, models } = this.options;
    if (catalogue.isPeer(modelId)) return true;
    const resolved = catalogue.resolve(modelId);
    return models.some((id) => id === modelId || catalogue.resolve(id) === resolved);
  }

  /**
   * Does the work when its turn comes, and rejects as it does. Throws GatewayError without doing it: `queue_full` when
   * the line is too long, `client_closed` when the response closes meanwhile, `shutting_down` after `close`.
   */
  async inTurn(response: ServerResponse, work: () => Promise<void>): Promise<void> {
    await this.turn(response);
    try {
      await work();
    } finally {
      this.running -= 1;
      this.admit();
    }
  }

  /** Refuses all that wait and all that come later; what runs goes on. */
  close(): void {
    this.isClosed = true;
    for (const { refuse } of [...this.line]) refuse(shuttingDown());
  }

  /** Resolves with one of the running places taken. */
  private async turn(response: ServerResponse): Promise<void> {
    const { concurrency, lineLength = 200 } = this.options;
    if (this.isClosed) throw shuttingDown();
    if (response.destroyed) throw clientGone();
    if (this.running >= concurrency && this.line.size >= lineLength) {
      throw new GatewayError('queue_full', 'too many requests wait for models without the GPU', {
        retryAfterSeconds: RETRY_AFTER_SECONDS,
      });
    }
    await new Promise<void>((resolve, reject) => {
      const left = (): void => place.refuse(clientGone());
      const leave = (): void => {
        this.line.delete(place);
        response.off('close', left);
      };
      const place: Place = {
        enter: () => {
          leave();
          resolve();
        },
        refuse: (error) => {
          leave();
          reject(error);
        },
      };
      this.line.add(place);
      response.on('close', left);
      this.admit();
    });
  }

  private admit(): void {
    for (const place of this.line) {
      if (this.running >= this.options.concurrency) return;
      this.running += 1;
      place.enter();
    }
  }
}

const shuttingDown = (): GatewayError =>
  new GatewayError('shutting_down', 'the gateway is shutting down');
const clientGone = (): GatewayError => new GatewayError('client_closed', 'the client has gone');
