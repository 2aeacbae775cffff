import { request } from 'undici';
import type { Dispatcher } from 'undici';
import { CommandError, Refusal } from './command-error.ts';
import { readRefusal } from './read-refusal.ts';
import { retryAfterSeconds } from './retry-after.ts';
import type { Terminal } from './terminal.ts';

/** How Berth is reached, and as whom. */
export interface ClientOptions {
  /** Berth's base address. */
  readonly url: string;
  /** Sent with every call; shown nowhere. */
  readonly key?: string | undefined;
  /** The member that a trusted key speaks for. */
  readonly member?: string | undefined;
}

/** One call. */
export interface Call {
  readonly method?: Dispatcher.HttpMethod;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
  /** Whether it may be sent again when its answer was lost; default true. */
  readonly mayRepeat?: boolean;
}

/** Berth's answer. */
export type Answer = Dispatcher.ResponseData;

/** How long a Berth that was there before may be away, and one that never was, in ms. */
const PATIENCE_MS = { known: 600_000, unknown: 5000 } as const;
/** Refusals with a Retry-After that are waited out in one call. */
const MOST_REFUSALS = 5;
/** Between two looks for a Berth that is away, in ms: doubling from the first to the last. */
const BACKOFF_MS = { first: 250, last: 5000 } as const;
/** Longest silence of an answer under way, in ms; Berth's event streams speak every 15 s. */
const SILENCE_MS = 90_000;

/** Speaks HTTP with a Berth: waits out refusals and restarts for a bounded time, leaves bytes as they are. */
export class BerthClient {
  /** The base address, without a slash at its end. */
  readonly base: string;
  private readonly terminal: Terminal;
  private readonly headers: Readonly<Record<string, string>>;
  private isKnown = false;

  /** Throws CommandError when address or key cannot be. */
  constructor({ url, key, member }: ClientOptions, terminal: Terminal) {
    this.base = baseOf(url);
    this.terminal = terminal;
    if (key !== undefined && !/^[\x21-\x7e]+$/.test(key))
      throw new CommandError('the key has characters that no key has');
    this.headers = {
      'accept-encoding': 'identity',
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(member === undefined ? {} : { 'x-berth-member': member }),
    };
  }

  /** An answer below 400, its body unread. Throws Refusal for any other, CommandError when Berth cannot be reached. */
  async call(path: string, call: Call = {}): Promise<Answer> {
    for (let refusals = 1; ; refusals += 1) {
      const answer = await this.open(path, call);
      if (answer.statusCode < 400) return answer;
      const refusal = readRefusal(answer.statusCode, Buffer.from(await answer.body.arrayBuffer()));
      const after = answer.headers['retry-after'];
      const seconds = retryAfterSeconds(answer.statusCode, after, Date.now());
      if (seconds === undefined || refusals > MOST_REFUSALS) throw refusal;
      this.terminal.say(`berth: ${refusal.message}; trying again in ${seconds} s`);
      await this.terminal.sleep(seconds * 1000);
    }
  }

  /** The JSON of an answer below 400. */
  async json<T>(path: string, call: Call = {}): Promise<T> {
    const answer = await this.call(path, call);
    return jsonOf<T>(answer);
  }

  /**
   * Whatever is answered, its body unread and its bytes as they came. A Berth that cannot be reached, or leaves without an
   * answer, is asked again for some seconds; one that has answered this client before, for ten minutes.
   */
  async open(path: string, call: Call = {}): Promise<Answer> {
    const { method = 'GET', body, mayRepeat = true } = call;
    const began = performance.now();
    for (let waitMs: number = BACKOFF_MS.first; ; waitMs = Math.min(BACKOFF_MS.last, waitMs * 2)) {
      this.terminal.check();
      try {
        const answer = await request(`${this.base}${path}`, {
          method,
          headers: { ...this.headers, ...call.headers },
          body: body ?? null,
          signal: this.terminal.signal,
          bodyTimeout: SILENCE_MS,
          headersTimeout: SILENCE_MS,
        });
        this.isKnown = true;
        return answer;
      } catch (error) {
        this.terminal.check();
        const patienceMs = this.isKnown ? PATIENCE_MS.known : PATIENCE_MS.unknown;
        const isOver = performance.now() - began + waitMs > patienceMs;
        if (isOver || !mayRepeat) throw this.unreachable(error);
        if (this.isKnown && waitMs === BACKOFF_MS.first)
          this.terminal.say(`berth: ${this.base} does not answer; trying again`);
        await this.terminal.sleep(waitMs);
      }
    }
  }

  private unreachable(cause: unknown): CommandError {
    const { code } = cause as NodeJS.ErrnoException;
    const why = typeof code === 'string' ? code : 'no answer';
    return new CommandError(`${this.base} cannot be reached: ${why}`, undefined, { cause });
  }
}

/** The JSON of an answer. Throws CommandError when it is none. */
export async function jsonOf<T>(answer: Answer): Promise<T> {
  const text = await answer.body.text();
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new CommandError(
      `the answer (${answer.statusCode}) is not Berth's; is the address right?`,
    );
  }
}

/** Whether asking again cannot help: the caller may not, or there is no such thing. */
export const isFinal = (error: unknown): boolean =>
  error instanceof Refusal && [400, 401, 403, 404, 410].includes(error.status);

function baseOf(url: string): string {
  const read = URL.canParse(url) ? new URL(url) : undefined;
  if (read === undefined || !/^https?:$/.test(read.protocol))
    throw new CommandError('--url: an http:// or https:// address is needed');
  if (read.username !== '' || read.password !== '')
    throw new CommandError('--url: the address carries a password; show a key with BERTH_KEY');
  return `${read.origin}${read.pathname}`.replace(/\/+$/, '');
}
