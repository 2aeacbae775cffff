import type { ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { headerOf } from '../gateway/headers.ts';
import type { ResponseSink } from '../gateway/relay-response.ts';
import type { ResponseHead } from '../ports/response-log.ts';
import { sendError, streamErrorOf } from './error-response.ts';
import { EventRelay } from './event-relay.ts';
import { probeWith } from './half-close.ts';
import { Pulse } from './pulse.ts';
import { RefusedStream } from './refused-stream.ts';
import { errorEvent } from './stream-frames.ts';
import type { WaitingSigns } from './waiting-signs.ts';

const STREAM_HEADERS = ['Content-Type', 'text/event-stream'];
const UNBUFFERED = [
  ['X-Accel-Buffering', 'no'],
  ['Cache-Control', 'no-cache'],
] as const;

/**
 * The client's connection as a sink.
 *
 * States: nothing sent -> answering (the answer's own head was sent) -> over; or nothing sent -> waiting (the first
 * sign of life committed a stream of status 200) -> streaming (the answer is a stream) | refused (it is not, and
 * becomes an error event) -> over. An answer that breaks off gets an error event in an event stream and a cut connection
 * elsewhere, so that it never looks complete.
 */
export class HttpResponseSink implements ResponseSink {
  /** How the answer ended for the client: a code of ours, or undefined while none was needed. */
  failure: ErrorCode | undefined;
  private readonly response: ServerResponse;
  private readonly extra: () => string[];
  private readonly signs: WaitingSigns | undefined;
  private readonly pulse: Pulse | undefined;
  private awaited: ResponseHead | undefined;
  private events: EventRelay | undefined;
  private refused: RefusedStream | undefined;
  private isStream = false;
  private isCommitted = false;
  private isOver = false;
  /** Body bytes the head announced; undefined where it did not. */
  private announcedBytes: number | undefined;
  private sentBytes = 0;

  /**
   * @param extra flat headers Berth adds, asked for when the head goes out
   * @param signs what a client that waits for a stream gets; it is silent without
   */
  constructor(response: ServerResponse, extra: () => string[], signs?: WaitingSigns) {
    this.response = response;
    this.extra = extra;
    this.signs = signs;
    if (signs === undefined || signs.isSilent) return;
    this.pulse = new Pulse(signs.times, () => void this.beat());
    response.once('close', () => this.pulse?.stop());
  }

  expect(head: ResponseHead): void {
    this.awaited = head;
  }

  head(head: ResponseHead): void {
    const { status, headers } = head;
    if (this.isCommitted) {
      if (status === 200 && isReadableStream(head)) this.events = this.newEvents();
      else this.refused = new RefusedStream(status);
      return;
    }
    this.isStream = isStream(head);
    if (isReadableStream(head)) {
      this.events = this.newEvents();
      probeWith(this.response, () => this.probe());
    } else this.pulse?.stop();
    const length = headerOf(headers, 'content-length');
    this.announcedBytes = length === undefined ? undefined : Number(length);
    const added = this.extra();
    if (this.isStream)
      for (const [name, value] of UNBUFFERED)
        if (headerOf(headers, name.toLowerCase()) === undefined) added.push(name, value);
    this.response.writeHead(status, [...headers, ...added]);
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.refused !== undefined) this.refused.add(bytes);
    else for (const piece of this.events?.pass(bytes) ?? [bytes]) await this.send(piece);
  }

  end(): void {
    if (this.refused !== undefined) {
      this.over(errorEvent(this.signs?.protocol, this.refused.error()));
      return;
    }
    for (const piece of this.events?.rest() ?? []) this.response.write(piece);
    this.over();
  }

  fail(code: ErrorCode, message: string): void {
    if (this.isOver) return;
    this.failure = code;
    if (!this.response.headersSent) {
      this.pulse?.stop();
      this.isOver = true;
      sendError(this.response, new GatewayError(code, message), this.extra());
    } else if (this.refused !== undefined) this.end();
    else if (this.isWhole) this.over();
    else if (this.isCommitted || this.events !== undefined) {
      const { protocol } = this.signs ?? {};
      const event = errorEvent(protocol, streamErrorOf(code, message), this.events?.events);
      this.over(this.events?.isOpen === false ? `\n\n${event}` : event);
    } else this.cut();
  }

  /** Whether the head of the model server's answer, or of an error, has come. */
  get hasAnswer(): boolean {
    return (
      this.isOver ||
      this.events !== undefined ||
      this.refused !== undefined ||
      (this.response.headersSent && !this.isCommitted)
    );
  }

  /** Whether the client has a whole answer although the job failed: one that says so itself. */
  private get isWhole(): boolean {
    return this.events?.hasSpoken === true || this.announcedBytes === this.sentBytes;
  }

  private newEvents(): EventRelay {
    return new EventRelay(this.signs?.protocol);
  }

  private async send(bytes: Buffer): Promise<void> {
    this.pulse?.touch();
    this.sentBytes += bytes.length;
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

  private over(last?: string): void {
    this.isOver = true;
    this.pulse?.stop();
    this.response.end(last);
  }

  /** Without chunks only a reset tells an end that was not meant from one that was. */
  private cut(): void {
    this.isOver = true;
    this.pulse?.stop();
    const { response } = this;
    // What was just written goes out in this turn yet.
    setImmediate(() => {
      if (response.req.httpVersion === '1.0') response.socket?.resetAndDestroy();
      else response.destroy();
    });
  }

  /** Whether a sign of life may go out right now. */
  private maySign(): boolean {
    if (this.isOver || this.refused !== undefined || this.response.destroyed) return false;
    if (this.response.writableNeedDrain) return false;
    if (this.events !== undefined) return this.events.isOpen;
    return (
      this.isCommitted ||
      this.awaited === undefined ||
      (this.awaited.status === 200 && isReadableStream(this.awaited))
    );
  }

  private async beat(): Promise<void> {
    if (this.signs === undefined || !this.maySign()) return;
    const sign = await this.signs.next(this.events !== undefined);
    // Much may have come while the place was looked up.
    if (!this.maySign()) return;
    if (!this.response.headersSent) this.commit();
    this.response.write(sign);
  }

  private commit(): void {
    this.isCommitted = true;
    this.response.writeHead(200, [...STREAM_HEADERS, ...UNBUFFERED.flat(), ...this.extra()]);
    probeWith(this.response, () => this.probe());
  }

  /** Sends something no reader minds, for a client of which only a write can tell whether it is still there. */
  private probe(): void {
    if (this.maySign()) this.response.write(':\n');
  }
}

const isStream = ({ headers }: ResponseHead): boolean =>
  /^text\/event-stream/i.test(headerOf(headers, 'content-type') ?? '');

const isReadableStream = (head: ResponseHead): boolean =>
  isStream(head) && /^identity$/i.test(headerOf(head.headers, 'content-encoding') ?? 'identity');
