import type { ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import type { ResponseSink } from '../gateway/relay-response.ts';
import type { ResponseHead } from '../ports/response-log.ts';
import { errorBody, sendError } from './error-response.ts';

/**
 * The client's connection as a sink. `extra`: flat headers Berth adds, asked for when the head goes out. An answer that
 * breaks off gets an error event in an event stream and a cut connection elsewhere, so that it never looks complete.
 */
export class HttpResponseSink implements ResponseSink {
  /** How the answer ended for the client: a code of ours, or undefined while none was needed. */
  failure: ErrorCode | undefined;
  private readonly response: ServerResponse;
  private readonly extra: () => string[];
  private isEventStream = false;

  constructor(response: ServerResponse, extra: () => string[]) {
    this.response = response;
    this.extra = extra;
  }

  head({ status, headers }: ResponseHead): void {
    const added = this.extra();
    for (let index = 0; index + 1 < headers.length; index += 2) {
      if (headers[index]?.toLowerCase() !== 'content-type') continue;
      this.isEventStream =
        headers[index + 1]?.toLowerCase().startsWith('text/event-stream') === true;
    }
    if (this.isEventStream)
      added.push(
        ...missing(headers, 'X-Accel-Buffering', 'no'),
        ...missing(headers, 'Cache-Control', 'no-cache'),
      );
    this.response.writeHead(status, [...headers, ...added]);
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.response.destroyed || this.response.write(bytes)) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        this.response.off('drain', done);
        this.response.off('close', done);
        resolve();
      };
      this.response.on('drain', done);
      this.response.on('close', done);
    });
  }

  end(): void {
    this.response.end();
  }

  fail(code: ErrorCode, message: string): void {
    this.failure = code;
    if (!this.response.headersSent)
      sendError(this.response, new GatewayError(code, message), this.extra());
    else if (this.isEventStream) this.response.end(`data: ${errorBody(code, message)}\n\n`);
    else this.response.destroy();
  }
}

function missing(headers: readonly string[], name: string, value: string): string[] {
  const isThere = headers.some(
    (text, index) => index % 2 === 0 && text.toLowerCase() === name.toLowerCase(),
  );
  return isThere ? [] : [name, value];
}
