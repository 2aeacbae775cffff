import type { IncomingHttpHeaders } from 'node:http';
import { monotonicMs } from './pace.ts';

/** What was seen of one request. Times are `monotonicMs()`. */
export interface RequestRecord {
  /** Counted from 1 in order of arrival. */
  readonly id: number;
  readonly method: string;
  /** The request target as it came over the wire, query included. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  /** Null until the whole body was read. */
  readonly bodySha256: string | null;
  readonly bodyBytes: number;
  /** Empty unless the server was told to keep bodies. */
  readonly body: Buffer;
  /** The id of the model it was for (aliases resolved); null when it named none or an unknown one. */
  readonly model: string | null;
  /** It needed the GPU: not a look at a model that was ready anyway. Refused ones count too. */
  readonly gpu: boolean;
  /** When the head had arrived. */
  readonly startedAtMs: number;
  /** When it took the GPU (body read, model known); null when it never did. */
  readonly gpuStartedAtMs: number | null;
  /** Just before the last bytes were handed to the socket, or when the client was seen to have left. */
  readonly endedAtMs: number | null;
  /** Status sent; null while no head was sent. */
  readonly status: number | null;
  /** The client left before the answer ended. */
  readonly aborted: boolean;
  /** It held the GPU at the same time as another one. */
  readonly overlapped: boolean;
}

/** A record while its request lives and its facts are still being filled in. */
export type RequestInProgress = { -readonly [K in keyof RequestRecord]: RequestRecord[K] };

/** Everything that was asked, and whether two requests ever held the GPU at once. */
export class RequestLog {
  readonly #kept: RequestInProgress[] = [];
  readonly #keep: number;
  readonly #onEnd: (record: RequestRecord) => void;
  readonly #onGpu = new Set<RequestInProgress>();
  /** Those of them whose work outlives their answer. */
  readonly #held = new Set<RequestInProgress>();
  #count = 0;
  #overlaps = 0;
  #maxConcurrent = 0;

  /** Keeps the newest `keep` records; `onEnd` is called with each record when its request has ended. */
  constructor(keep: number, onEnd: (record: RequestRecord) => void) {
    this.#keep = keep;
    this.#onEnd = onEnd;
  }

  /** Oldest first. */
  get records(): readonly RequestRecord[] {
    return this.#kept;
  }

  /** Requests that held the GPU at the same time as another one. */
  get overlaps(): number {
    return this.#overlaps;
  }

  /** The most that ever held the GPU at once. */
  get maxConcurrent(): number {
    return this.#maxConcurrent;
  }

  /** Whether any holds the GPU now. */
  get isGpuBusy(): boolean {
    return this.#onGpu.size > 0;
  }

  arrived(
    head: Pick<RequestRecord, 'method' | 'target' | 'headers' | 'rawHeaders'>,
  ): RequestInProgress {
    this.#count += 1;
    const record: RequestInProgress = {
      ...head,
      id: this.#count,
      bodySha256: null,
      bodyBytes: 0,
      body: Buffer.alloc(0),
      model: null,
      gpu: false,
      startedAtMs: monotonicMs(),
      gpuStartedAtMs: null,
      endedAtMs: null,
      status: null,
      aborted: false,
      overlapped: false,
    };
    this.#kept.push(record);
    if (this.#kept.length > this.#keep) this.#kept.shift();
    return record;
  }

  tookGpu(record: RequestInProgress): void {
    record.gpuStartedAtMs = monotonicMs();
    this.#onGpu.add(record);
    this.#maxConcurrent = Math.max(this.#maxConcurrent, this.#onGpu.size);
    if (this.#onGpu.size < 2) return;
    for (const other of this.#onGpu) {
      if (!other.overlapped) this.#overlaps += 1;
      other.overlapped = true;
    }
  }

  /** Marks the end once; later calls for the same record change nothing. */
  ended(record: RequestInProgress, aborted: boolean): void {
    if (record.endedAtMs !== null) return;
    record.endedAtMs = monotonicMs();
    record.aborted = aborted;
    if (!this.#held.has(record)) this.#onGpu.delete(record);
    this.#onEnd(record);
  }

  /** From now on the request counts as holding the GPU, also after its end, until the function returned is called. */
  hold(record: RequestInProgress): () => void {
    this.#held.add(record);
    this.#onGpu.add(record);
    return () => {
      this.#held.delete(record);
      this.#onGpu.delete(record);
    };
  }
}
