import { setTimeout as delay } from 'node:timers/promises';
import { CommandError, EXIT } from './command-error.ts';

/** Where a command speaks, and what ends it early. */
export class Terminal {
  readonly out: NodeJS.WriteStream;
  readonly err: NodeJS.WriteStream;
  /** Aborts when the person at the terminal has had enough. */
  readonly signal: AbortSignal;
  private hint = 'nothing was changed.';

  constructor(out: NodeJS.WriteStream, err: NodeJS.WriteStream, signal: AbortSignal) {
    this.out = out;
    this.err = err;
    this.signal = signal;
  }

  /** A result, which others may read: standard output. */
  print(text: string): void {
    this.out.write(`${text}\n`);
  }

  /** Beside the result: standard error. */
  say(text: string): void {
    this.err.write(`${text}\n`);
  }

  /** What stays when the command is interrupted from here on, and how to go on. */
  ifInterrupted(hint: string): void {
    this.hint = hint;
  }

  /** Throws when the command was interrupted. */
  check(): void {
    if (this.signal.aborted) throw new CommandError(`interrupted: ${this.hint}`, EXIT.interrupted);
  }

  /** Waits; throws when the command is interrupted meanwhile. */
  async sleep(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.signal }).catch(() => undefined);
    this.check();
  }
}
