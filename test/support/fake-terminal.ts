import { PassThrough } from 'node:stream';
import { Terminal } from '../../src/cli/terminal.ts';

/** A terminal of a test: it keeps what it was told and does not wait. */
export class FakeTerminal extends Terminal {
  /** What it was asked to wait, in ms. */
  readonly waits: number[] = [];
  private readonly texts: { out: () => string; err: () => string };

  /** @param isTty whether its streams say that they are a person's */
  constructor(isTty = false, signal: AbortSignal = new AbortController().signal) {
    const [out, err] = [stream(isTty), stream(false)];
    super(out.stream, err.stream, signal);
    this.texts = { out: out.text, err: err.text };
  }

  /** Everything on standard output so far. */
  get output(): string {
    return this.texts.out();
  }

  /** Everything on standard error so far. */
  get said(): string {
    return this.texts.err();
  }

  override sleep(ms: number): Promise<void> {
    this.waits.push(ms);
    this.check();
    return Promise.resolve();
  }
}

function stream(isTty: boolean): { stream: NodeJS.WriteStream; text: () => string } {
  const pieces: Buffer[] = [];
  const through = new PassThrough();
  through.on('data', (piece: Buffer) => pieces.push(piece));
  const writable = Object.assign(through, { isTTY: isTty, columns: 80 });
  return {
    // Of a terminal's stream nothing else is used.
    stream: writable as unknown as NodeJS.WriteStream,
    text: () => Buffer.concat(pieces).toString(),
  };
}
