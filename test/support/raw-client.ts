import { connect } from 'node:net';
import type { Socket } from 'node:net';

/** A client that knows no HTTP: what it is told to send, and every byte that came back. */
export class RawClient {
  readonly socket: Socket;
  /** Pieces as they came. */
  readonly pieces: Buffer[] = [];
  isClosed = false;
  private wake: () => void = () => undefined;

  private constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setNoDelay(true);
    this.socket.on('data', (piece) => {
      this.pieces.push(piece);
      this.wake();
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.isClosed = true;
      this.wake();
    });
  }

  /** Connects to the port of a URL of this machine. */
  static async to(url: string): Promise<RawClient> {
    const client = new RawClient(Number(new URL(url).port));
    await new Promise<void>((resolve, reject) => {
      client.socket.once('connect', resolve);
      client.socket.once('error', reject);
    });
    return client;
  }

  /** Sends and waits until the kernel has taken it. */
  async send(bytes: string | Uint8Array): Promise<void> {
    const data = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
    if (this.socket.destroyed) return;
    await new Promise<void>((resolve) => this.socket.write(data, () => resolve()));
  }

  /** Everything that came so far. */
  get bytes(): Buffer {
    return Buffer.concat(this.pieces);
  }

  /** The same, one character a byte. */
  get text(): string {
    return this.bytes.toString('latin1');
  }

  /** Resolves as soon as what came fulfils it; rejects when the connection ends before, or after `timeoutMs`. */
  async until(isEnough: (text: string) => boolean, timeoutMs = 10_000): Promise<string> {
    const deadline = performance.now() + timeoutMs;
    while (!isEnough(this.text)) {
      if (this.isClosed) throw new Error(`closed after ${JSON.stringify(this.text.slice(0, 500))}`);
      await this.something(deadline, timeoutMs);
    }
    return this.text;
  }

  /** Resolves with everything once the other side has closed. */
  async closed(timeoutMs = 10_000): Promise<string> {
    const deadline = performance.now() + timeoutMs;
    while (!this.isClosed) await this.something(deadline, timeoutMs);
    return this.text;
  }

  /** The next whole answer, taken from what came: its head and its body, chunks put together. */
  async answer(timeoutMs = 10_000): Promise<RawAnswer> {
    let found: { answer: RawAnswer; bytes: number } | undefined;
    while (found === undefined) {
      await this.until(
        (text) => (found = readAnswer(text, this.isClosed)) !== undefined,
        timeoutMs,
      );
    }
    const rest = this.bytes.subarray(found.bytes);
    this.pieces.splice(0, this.pieces.length, rest);
    return found.answer;
  }

  leave(): void {
    this.socket.destroy();
  }

  private async something(deadline: number, timeoutMs: number): Promise<void> {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0)
      throw new Error(`not in ${timeoutMs} ms; came: ${JSON.stringify(this.text.slice(0, 500))}`);
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, leftMs);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** An answer taken apart. */
export interface RawAnswer {
  status: number;
  /** Header lines as they came, without the status line. */
  lines: string[];
  /** One character a byte. */
  body: string;
}

/** The values of a header, in order. */
export function valuesOf(answer: Pick<RawAnswer, 'lines'>, name: string): string[] {
  const start = `${name.toLowerCase()}:`;
  return answer.lines
    .filter((line) => line.toLowerCase().startsWith(start))
    .map((line) => line.slice(start.length).trim());
}

function readAnswer(
  text: string,
  isClosed: boolean,
): { answer: RawAnswer; bytes: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [statusLine = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const at = headEnd + 4;
  const answer = { status, lines, body: '' };
  if (status < 200) return readAfter(text, at, isClosed);
  const [length] = valuesOf(answer, 'content-length');
  if (status === 204 || status === 304) return { answer, bytes: at };
  if (length !== undefined) {
    const end = at + Number(length);
    return text.length < end
      ? undefined
      : { answer: { ...answer, body: text.slice(at, end) }, bytes: end };
  }
  if (valuesOf(answer, 'transfer-encoding').length > 0) {
    const chunked = readChunks(text, at);
    return chunked && { answer: { ...answer, body: chunked.body }, bytes: chunked.end };
  }
  return isClosed ? { answer: { ...answer, body: text.slice(at) }, bytes: text.length } : undefined;
}

/** The answer behind an interim one. */
function readAfter(text: string, at: number, isClosed: boolean): ReturnType<typeof readAnswer> {
  const found = readAnswer(text.slice(at), isClosed);
  return found && { answer: found.answer, bytes: found.bytes + at };
}

/** A chunked body from `from` on, or undefined while its last chunk has not come. */
export function readChunks(text: string, from = 0): { body: string; end: number } | undefined {
  let body = '';
  for (let at = from; ;) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size;
    if (text.length < end + 2) return undefined;
    if (size === 0) return { body, end: end + 2 };
    body += text.slice(lineEnd + 2, end);
    at = end + 2;
  }
}
