import type { ModelCatalogue, ModelServer } from '../../ports/model-server.ts';
import type { ModelSwap, ResidentModel, Residents } from '../../ports/resident-model.ts';
import { followModelStatus } from './follow-model-status.ts';
import type { ModelStatusRow } from './model-directory.ts';
import { readText } from './read-text.ts';
import { ResidencyBook } from './residency-book.ts';
import type { ModelProcess } from './residency-book.ts';
import { WakeablePause } from './wakeable-pause.ts';

/** What watching needs. */
export interface ResidentModelWatchOptions {
  server: ModelServer;
  /** Credentials the model server wants, flat. */
  headers: readonly string[];
  catalogue: Pick<ModelCatalogue, 'resolve' | 'isPeer'>;
  /** Models that need no GPU (`bypass.models`), by any of their names: they never count as resident. */
  ignored?: readonly string[];
  /** Called when the model server becomes readable or stops being so, the first reading included. */
  onReadable?: (isReadable: boolean) => void;
  /** Called with the data of every event of `/api/events`. */
  onData?: (data: string) => void;
  /** Milliseconds between two readings of `/running`; default 3000. */
  pollMs?: number;
  /** Silence of the event stream after which it is opened anew, in ms; default 60 000. */
  silenceMs?: number;
}

/** Between two readings while a model loads and no events tell of it, in ms. */
const SETTLING_MS = 250;
const READ_MS = 2_000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 10_000;
/** An event stream that lasted so long did not fail, in ms. */
const LASTED_MS = 5_000;
/** Readings that must fail in a row before an open event stream is no longer believed. */
const DISTRUSTED_FAILURES = 2;

/**
 * Watches which models a llama-swap holds: `/api/events` tells each change at once, and `/running`, read at the start
 * and every few seconds, catches what that stream lost (slow readers lose messages; there is no heartbeat, so a stream
 * that is silent for long is opened anew). A reading that fails while no stream is open makes the state unknown, never
 * "none". It owns its two loops until `close`.
 */
export class ResidentModelWatch implements ResidentModel {
  private readonly options: ResidentModelWatchOptions;
  private readonly book = new ResidencyBook();
  private readonly closing = new AbortController();
  private readonly changeListeners = new Set<() => void>();
  private readonly swapListeners = new Set<(swap: ModelSwap) => void>();
  private readonly loops: Promise<void>[] = [];
  private readonly pollPause = new WakeablePause();
  private readonly retryPause = new WakeablePause();
  private stream: AbortController | undefined;
  /** The event stream has told the state and is still open. */
  private isStreaming = false;
  private toldAtMs = -Infinity;
  /** Readings of /running that failed in a row. */
  private failures = 0;
  private wasReadable: boolean | undefined;

  constructor(options: ResidentModelWatchOptions) {
    this.options = options;
  }

  /** Resolves after the first reading, whether or not it succeeded; the loops run on. Never rejects. */
  async start(): Promise<void> {
    await this.poll();
    this.loops.push(this.keepPolling(), this.keepListening());
  }

  /** Ends both loops and their requests. */
  async close(): Promise<void> {
    this.closing.abort();
    this.pollPause.end();
    this.retryPause.end();
    await Promise.all(this.loops);
  }

  current(): string | null {
    return this.book.residents().models[0] ?? null;
  }

  residents(): Residents {
    return this.book.residents();
  }

  isResident(modelId: string): boolean {
    return this.residents().models.includes(this.options.catalogue.resolve(modelId));
  }

  noteDispatched(modelId: string): void {
    const { catalogue } = this.options;
    const model = catalogue.resolve(modelId);
    if (catalogue.isPeer(modelId) || this.ignored().has(model)) return;
    this.changing(() => this.book.dispatched(model, performance.now()));
    if (this.book.isSettling && !this.isStreaming) this.pollPause.wake();
  }

  onChange(listener: () => void): () => void {
    this.changeListeners.add(listener);
    return () => void this.changeListeners.delete(listener);
  }

  onSwap(listener: (swap: ModelSwap) => void): () => void {
    this.swapListeners.add(listener);
    return () => void this.swapListeners.delete(listener);
  }

  private async keepPolling(): Promise<void> {
    const { pollMs = 3_000 } = this.options;
    while (!this.isClosed) {
      const isHasty = this.book.isSettling && !this.isStreaming;
      await this.pollPause.wait(isHasty ? Math.min(SETTLING_MS, pollMs) : pollMs);
      await this.poll();
    }
  }

  private async poll(): Promise<void> {
    const askedAtMs = performance.now();
    const processes = await this.running().catch(() => undefined);
    if (this.isClosed) return;
    if (processes !== undefined) {
      this.failures = 0;
      // An event that came meanwhile is newer than this answer.
      if (this.toldAtMs < askedAtMs) this.read(processes);
      return;
    }
    this.failures += 1;
    if (this.isStreaming && this.failures < DISTRUSTED_FAILURES) return;
    // The stream's other end may be gone without a word.
    this.stream?.abort();
    this.isStreaming = false;
    this.lost();
  }

  private async running(): Promise<ModelProcess[]> {
    const { server, headers } = this.options;
    const { signal } = this.closing;
    const { status, text } = await readText(server, '/running', {
      headers,
      timeoutMs: READ_MS,
      signal,
    });
    if (status !== 200) throw new Error(`/running answered ${status}`);
    const { running } = JSON.parse(text) as { running: ModelProcess[] };
    return running.map(({ model, state }) => ({ model, state }));
  }

  private async keepListening(): Promise<void> {
    let retryMs = FIRST_RETRY_MS;
    while (!this.isClosed) {
      const openedAtMs = performance.now();
      await this.listen();
      if (performance.now() - openedAtMs > LASTED_MS) retryMs = FIRST_RETRY_MS;
      await this.retryPause.wait(retryMs);
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    }
  }

  private async listen(): Promise<void> {
    const { server, headers, onData, silenceMs = 60_000 } = this.options;
    const stream = new AbortController();
    this.stream = stream;
    const onStatus = (rows: readonly ModelStatusRow[]): void => {
      if (stream.signal.aborted) return;
      this.isStreaming = true;
      this.toldAtMs = performance.now();
      const local = rows.filter(({ peerID }) => (peerID ?? '') === '');
      this.read(local.map(({ id, state }) => ({ model: id, state: state ?? '' })));
    };
    const signal = AbortSignal.any([stream.signal, this.closing.signal]);
    // Why a stream ended makes no difference: the next reading of /running tells what is to be known.
    const tapped = onData === undefined ? {} : { onData };
    await followModelStatus({ server, headers, silenceMs, signal, onStatus, ...tapped }).catch(
      () => undefined,
    );
    this.isStreaming = false;
    this.pollPause.wake();
  }

  private get isClosed(): boolean {
    return this.closing.signal.aborted;
  }

  private read(processes: readonly ModelProcess[]): void {
    let swaps: ModelSwap[] = [];
    const ignored = this.ignored();
    const counted = processes.filter(({ model }) => !ignored.has(model));
    this.changing(() => (swaps = this.book.read(counted, performance.now())));
    this.readable(true);
    for (const swap of swaps) for (const listener of this.swapListeners) listener(swap);
  }

  private ignored(): Set<string> {
    const { ignored = [], catalogue } = this.options;
    return new Set(ignored.map((id) => catalogue.resolve(id)));
  }

  private lost(): void {
    this.changing(() => this.book.lost());
    this.readable(false);
  }

  private readable(isReadable: boolean): void {
    if (this.wasReadable === isReadable) return;
    this.wasReadable = isReadable;
    this.options.onReadable?.(isReadable);
  }

  private changing(change: () => void): void {
    const before = JSON.stringify(this.residents());
    change();
    if (JSON.stringify(this.residents()) === before) return;
    for (const listener of this.changeListeners) listener();
  }
}
