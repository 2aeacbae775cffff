import type { JobKind } from '../ports/telemetry.ts';
import { EventStreamReader } from './event-stream.ts';
import { headerOf } from './headers.ts';
import { JsonBalance } from './json-balance.ts';
import { protocolOf, signOf } from './stream-protocol.ts';
import type { StreamProtocol, StreamSign } from './stream-protocol.ts';
import { isHtml } from './transient-answer.ts';

/** What is wrong with an answer that HTTP thinks well of. */
export interface AnswerFault {
  code: 'model_server_truncated' | 'model_server_invalid';
  message: string;
}

/** What an answer is judged by. */
export interface AnswerTraits {
  method: string;
  target: string;
  kind: JobKind;
  status: number;
  /** Flat list name, value, … */
  headers: readonly string[];
}

/**
 * Looks at a 200 of an inference route as it passes by, because llama-swap ends the answer of a model that died as
 * if all were well: a web page, nothing at all, JSON that is not whole, a stream without its last word, a stream
 * that says an error. Answers of other statuses and routes, and encoded bodies, are taken as they are.
 */
export class AnswerCheck {
  private readonly isInference: boolean;
  private readonly isPage: boolean;
  private readonly stream: EventStreamReader | undefined;
  private readonly json: JsonBalance | undefined;
  private readonly protocol: StreamProtocol | undefined;
  private readonly signs = new Set<StreamSign>();
  private bytes = 0;

  constructor({ method, target, kind, status, headers }: AnswerTraits) {
    this.isInference = method === 'POST' && kind !== 'other' && status === 200;
    this.isPage = this.isInference && isHtml(headers);
    this.protocol = protocolOf(target);
    const encoding = headerOf(headers, 'content-encoding') ?? 'identity';
    if (!this.isInference || !/^identity$/i.test(encoding)) return;
    const type = headerOf(headers, 'content-type') ?? '';
    if (/^text\/event-stream/i.test(type))
      this.stream = new EventStreamReader((event) => this.signs.add(signOf(this.protocol, event)));
    else if (/^application\/json/i.test(type) && headerOf(headers, 'content-length') === undefined)
      this.json = new JsonBalance();
  }

  /** What the head alone gives away: then nothing of the body is worth passing on. */
  atHead(): AnswerFault | undefined {
    return this.isPage
      ? invalid('the model server answered with a web page instead of a result')
      : undefined;
  }

  /** Looks at a piece of the body. */
  push(piece: Buffer): void {
    this.bytes += piece.length;
    this.stream?.push(piece);
    this.json?.push(piece);
  }

  /** Whether a stream said its last word: what breaks afterwards does no harm. */
  get isDone(): boolean {
    return this.signs.has('done') && !this.signs.has('error');
  }

  /** What is wrong although the body came to a clean end. */
  atEnd(): AnswerFault | undefined {
    if (!this.isInference) return undefined;
    if (this.bytes === 0) return invalid('the model server answered with nothing');
    this.stream?.end();
    if (this.signs.has('error')) return invalid('the model server reported an error in its stream');
    const isCut =
      (this.stream !== undefined &&
        this.protocol !== undefined &&
        !this.signs.has('done') &&
        !this.signs.has('finished')) ||
      this.json?.isWhole === false;
    return isCut
      ? { code: 'model_server_truncated', message: 'the model server broke off its answer' }
      : undefined;
  }
}

const invalid = (message: string): AnswerFault => ({ code: 'model_server_invalid', message });
