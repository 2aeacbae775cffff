import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { waitFor, waitForAbort } from './pace.ts';

/** Where an answer is broken off: after so many writes or so many bytes of body, whichever is given. */
export interface Cut {
  readonly afterWrites?: number;
  readonly afterBytes?: number;
  /**
   * `destroy` closes the socket, `reset` resets it, `end` looks like a tidy end of a chunked body,
   * `silence` sends nothing more until the client leaves.
   */
  readonly how: 'destroy' | 'reset' | 'end' | 'silence';
}

/** Thrown into work whose answer nobody will read, or which a cut broke off. */
export class AnswerOverError extends Error {
  override readonly name = 'AnswerOverError';
}

/**
 * One answer on its way out: it keeps backpressure, notices a client that leaves, and says when it is over just
 * before the client can see that. Over exactly once: answered, cut, or the client left.
 */
export class Answer {
  readonly #response: ServerResponse;
  readonly #over = new AbortController();
  readonly #onOver: (clientLeft: boolean) => void;
  readonly #stopWatching: () => void;
  #cut: Cut | undefined;
  #headers: OutgoingHttpHeaders = {};
  #kept: Buffer[] = [];
  #keptRoom = -1;
  #sentBytes = 0;
  #sliceBytes = Infinity;
  #deaf = false;
  #isClientGone = false;
  #isOver = false;
  #writes = 0;
  #bytes = 0;

  constructor(response: ServerResponse, onOver: (clientLeft: boolean) => void) {
    this.#response = response;
    this.#onOver = onOver;
    const left = (): void => this.#clientLeft();
    const socket = response.req.socket;
    // The end of the socket is seen one turn of the event loop before the response closes.
    socket.once('end', left).once('error', left);
    response.once('close', left);
    this.#stopWatching = () => {
      socket.off('end', left).off('error', left);
      response.off('close', left);
    };
  }

  /** Aborts when the answer is over. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get status(): number | null {
    return this.#response.headersSent ? this.#response.statusCode : null;
  }

  /** Headers sent, as they were named. */
  get headers(): OutgoingHttpHeaders {
    return this.#headers;
  }

  /** Bytes of body handed to the socket, the last piece included once the answer is over. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** The body so far; undefined when it was more than `keepBody` said, or nothing was to be kept. */
  get keptBody(): Buffer | undefined {
    return this.#keptRoom < 0 ? undefined : Buffer.concat(this.#kept);
  }

  /** From now on keeps the body, up to so many bytes. */
  keepBody(bytes: number): void {
    this.#keptRoom = bytes;
  }

  /** The client has not yet read what was written before. */
  get isBehind(): boolean {
    return this.#response.writableNeedDrain;
  }

  /** From now on the answer breaks off there; one that is shorter breaks off in place of its end. */
  breakOff(cut: Cut): void {
    this.#cut = cut;
  }

  /** From now on every write goes out in pieces of at most so many bytes, each in a turn of its own. */
  slice(bytes: number): void {
    this.#sliceBytes = bytes;
  }

  /** From now on the work goes on when the client has left. */
  ignoreClient(): void {
    this.#deaf = true;
  }

  /** Sends status and headers at once, before there is any body. */
  head(status: number, headers: OutgoingHttpHeaders): void {
    const sent = { ...headers };
    if (this.#cut?.how === 'end') delete sent['Content-Length'];
    this.#writeHead(status, sent);
    this.#response.flushHeaders();
  }

  /** Sends a piece of the body and waits while the client does not read; throws AnswerOverError when it is over. */
  async write(piece: string | Uint8Array): Promise<void> {
    const bytes =
      typeof piece === 'string'
        ? Buffer.from(piece)
        : Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    for (let from = 0; from < bytes.length; from += this.#sliceBytes) {
      await this.#writeWhole(bytes.subarray(from, from + this.#sliceBytes));
      if (this.#sliceBytes !== Infinity) await waitFor(0, this.signal);
    }
  }

  /** Sends the last piece; the answer is over before the client can see its end. */
  async end(lastPiece: string | Uint8Array = ''): Promise<void> {
    if (this.#cut !== undefined || this.#sliceBytes !== Infinity) {
      await this.write(lastPiece);
      if (this.#cut !== undefined) await this.#breakOffNow(this.#cut.how);
      lastPiece = '';
    }
    this.#count(lastPiece);
    this.#finish();
    this.#response.end(lastPiece);
  }

  /** Head and whole body in one go, with a length. */
  async send(
    status: number,
    headers: OutgoingHttpHeaders,
    body: string | Uint8Array,
  ): Promise<void> {
    const sent =
      status === 204 ? headers : { ...headers, 'Content-Length': Buffer.byteLength(body) };
    if (this.#cut !== undefined || this.#sliceBytes !== Infinity) this.head(status, sent);
    else this.#writeHead(status, sent);
    await this.end(body);
  }

  /** Closes the socket without a word. */
  hangUp(): void {
    this.#finish();
    this.#response.req.socket.destroy();
  }

  /** Writes bytes of the caller's choice in place of an HTTP answer; closes the socket after them if asked to. */
  async raw(bytes: string | Uint8Array, close: boolean): Promise<void> {
    const socket = this.#response.req.socket;
    await new Promise((resolve) => socket.write(bytes, resolve));
    if (!close) await waitForAbort(this.signal);
    this.#finish();
    socket.destroy();
  }

  /**
   * Ends as llama-swap ends an answer whose model has died, or whose request was cancelled at work: an empty 502, or a
   * tidy end in the middle.
   */
  modelDied(): void {
    this.#giveUp(502);
  }

  /** Ends as llama-swap ends a request that was cancelled while it waited: a 200 without a byte. */
  cancelledWaiting(): void {
    this.#giveUp(200);
  }

  #giveUp(status: 200 | 502): void {
    if (this.signal.aborted) return;
    const response = this.#response;
    const started = response.headersSent;
    if (!started) this.#writeHead(status, { 'Content-Length': 0 });
    this.#finish();
    if (started && 'Content-Length' in this.#headers) response.req.socket.destroy();
    else response.end();
  }

  #writeHead(status: number, headers: OutgoingHttpHeaders): void {
    this.#headers = headers;
    this.#response.writeHead(status, headers);
  }

  #count(piece: string | Uint8Array): void {
    const bytes = Buffer.byteLength(piece);
    this.#sentBytes += bytes;
    if (this.#keptRoom < 0) return;
    this.#keptRoom -= bytes;
    if (this.#keptRoom < 0) this.#kept = [];
    else this.#kept.push(Buffer.from(piece));
  }

  async #writeWhole(bytes: Buffer): Promise<void> {
    this.signal.throwIfAborted();
    const room = (this.#cut?.afterBytes ?? Infinity) - this.#bytes;
    const noMoreWrites = this.#writes >= (this.#cut?.afterWrites ?? Infinity);
    const piece = noMoreWrites ? bytes.subarray(0, 0) : bytes.subarray(0, room);
    this.#writes += 1;
    this.#bytes += piece.length;
    this.#count(piece);
    if (piece.length > 0 && !this.#response.destroyed && !this.#response.write(piece)) {
      await this.#drained();
    }
    this.signal.throwIfAborted();
    const full = this.#bytes >= (this.#cut?.afterBytes ?? Infinity);
    const enough = this.#writes >= (this.#cut?.afterWrites ?? Infinity);
    if (this.#cut !== undefined && (full || enough)) await this.#breakOffNow(this.#cut.how);
  }

  /** Resolves when the client has read enough, or has gone, or the answer is over. */
  #drained(): Promise<void> {
    const response = this.#response;
    return new Promise((resolve) => {
      const done = (): void => {
        response.off('drain', done).off('close', done);
        this.signal.removeEventListener('abort', done);
        resolve();
      };
      response.on('drain', done).on('close', done);
      this.signal.addEventListener('abort', done);
    });
  }

  async #breakOffNow(how: Cut['how']): Promise<never> {
    if (how === 'silence') await waitForAbort(this.signal);
    // An empty write's callback comes after everything written before it has left.
    if (how !== 'end') await new Promise((resolve) => this.#response.write('', resolve));
    this.#finish();
    if (how === 'end') this.#response.end();
    else if (how === 'reset') this.#response.req.socket.resetAndDestroy();
    else this.#response.req.socket.destroy();
    throw this.signal.reason as Error;
  }

  #clientLeft(): void {
    this.#isClientGone = true;
    if (!this.#deaf) this.#finish();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopWatching();
    this.#onOver(this.#isClientGone);
    this.#over.abort(
      new AnswerOverError(this.#isClientGone ? 'the client left' : 'the answer is over'),
    );
  }
}
