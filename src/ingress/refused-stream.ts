import { readUpstreamError } from '../gateway/upstream-error.ts';
import { streamErrorOf } from './error-response.ts';
import type { StreamError } from './stream-frames.ts';

/** Bytes kept of an answer that becomes an error event. */
const KEPT_BYTES = 64 * 1024;

/** An answer that is no stream for a client that was already promised one: it becomes an error event. */
export class RefusedStream {
  private readonly status: number;
  private readonly pieces: Buffer[] = [];
  private bytes = 0;

  constructor(status: number) {
    this.status = status;
  }

  /** Takes a piece of the body in. */
  add(piece: Buffer): void {
    const room = KEPT_BYTES - this.bytes;
    if (room <= 0) return;
    this.pieces.push(piece.subarray(0, room));
    this.bytes += Math.min(room, piece.length);
  }

  /** The model server's own error as far as it can be read, else ours about it. */
  error(): StreamError {
    const { status } = this;
    if (status < 400)
      return streamErrorOf(
        'model_server_invalid',
        'the model server answered without a stream to a request for one',
      );
    const { isOwn, message, type, code, sent } = readUpstreamError(
      Buffer.concat(this.pieces).toString(),
    );
    const { param } = sent ?? {};
    return {
      status,
      message: message || `the model server answered with status ${status}`,
      type: type || (status === 429 ? 'rate_limit_error' : typeOf(status)),
      param: typeof param === 'string' ? param : null,
      code: sent?.code ?? (code || status),
      src: isOwn ? 'llama-swap' : undefined,
    };
  }
}

const typeOf = (status: number): string =>
  status < 500 ? 'invalid_request_error' : 'server_error';
