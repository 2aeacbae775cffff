import type { TokensUsed } from './generation.ts';

/** One metered request after its end; the field names are llama-swap's. */
export interface ActivityRow {
  readonly id: number;
  readonly timestamp: string;
  readonly model: string;
  readonly req_path: string;
  readonly resp_content_type: string;
  readonly resp_status_code: number;
  readonly tokens: {
    readonly cache_tokens: number;
    readonly draft_tokens: number;
    readonly draft_acc_tokens: number;
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly prompt_per_second: number;
    readonly tokens_per_second: number;
  };
  readonly duration_ms: number;
  readonly has_capture: boolean;
  readonly error_msg?: string;
}

/** What a row is made from. */
export interface MeteredRequest {
  /** Wall clock at its arrival. */
  readonly arrivedAt: Date;
  readonly model: string;
  readonly path: string;
  readonly contentType: string;
  readonly status: number;
  readonly used: TokensUsed;
  readonly durationMs: number;
  readonly hasCapture: boolean;
  readonly isAborted: boolean;
}

const keptRows = 1000;

/** The last 1000 metered requests, waiting time included in how long they took. */
export class Activity {
  readonly #rows: ActivityRow[] = [];
  #count = 0;

  /** Oldest first. */
  get rows(): readonly ActivityRow[] {
    return this.#rows;
  }

  /** The id that the next row gets. */
  get nextId(): number {
    return this.#count + 1;
  }

  /** Adds a row and returns its id. */
  add(request: MeteredRequest): number {
    this.#count += 1;
    const { used, durationMs } = request;
    const rate = (tokens: number): number => (durationMs > 0 ? (tokens / durationMs) * 1000 : 0);
    this.#rows.push({
      id: this.#count,
      timestamp: request.arrivedAt.toISOString(),
      model: request.model,
      req_path: request.path,
      resp_content_type: request.contentType,
      resp_status_code: request.status,
      tokens: {
        cache_tokens: 0,
        draft_tokens: 0,
        draft_acc_tokens: 0,
        input_tokens: used.input,
        output_tokens: used.output,
        prompt_per_second: rate(used.input),
        tokens_per_second: rate(used.output),
      },
      duration_ms: Math.round(durationMs),
      has_capture: request.hasCapture,
      ...(request.isAborted ? { error_msg: 'context canceled' } : {}),
    });
    if (this.#rows.length > keptRows) this.#rows.shift();
    return this.#count;
  }
}
