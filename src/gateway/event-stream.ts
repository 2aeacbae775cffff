/** One event of a server-sent event stream. */
export interface StreamEvent {
  /** Its `event` field; empty where it has none. */
  name: string;
  /** Its `data`, lines joined; at most the first 16 KiB. */
  data: string;
  /** Whether it has a field of the name `error`, as older llama.cpp writes errors. */
  hasErrorField: boolean;
}

/** Bytes kept of a line or an event: what tells how a stream ends is short. */
const KEPT_BYTES = 16 * 1024;
const LF = 10;
const CR = 13;

/**
 * Reads a server-sent event stream as it passes by, in bounded memory. It is at a border when no field of an
 * unfinished event has been read: only there may another event or a comment be put in.
 */
export class EventStreamReader {
  private readonly onEvent: (event: StreamEvent) => void;
  private line: Buffer[] = [];
  private lineBytes = 0;
  private lineKept = 0;
  private afterCr = false;
  private fields = 0;
  private name = '';
  private data: string[] = [];
  private dataKept = 0;
  private hasErrorField = false;

  constructor(onEvent: (event: StreamEvent) => void) {
    this.onEvent = onEvent;
  }

  /** Whether everything read so far is made of whole events and comments. */
  get atBorder(): boolean {
    return this.lineBytes === 0 && this.fields === 0;
  }

  /** Reads on. Returns how many of these bytes lie before the last border among them; -1: there is none. */
  push(bytes: Buffer): number {
    let border = -1;
    let start = 0;
    if (bytes.length > 0 && this.afterCr) {
      this.afterCr = false;
      if (bytes[0] === LF) {
        start = 1;
        if (this.atBorder) border = 1;
      }
    }
    let lf = bytes.indexOf(LF, start);
    let cr = bytes.indexOf(CR, start);
    while (lf !== -1 || cr !== -1) {
      const isCr = cr !== -1 && (lf === -1 || cr < lf);
      const end = isCr ? cr : lf;
      this.gather(bytes.subarray(start, end));
      this.endLine();
      start = end + 1;
      if (isCr && start === bytes.length) this.afterCr = true;
      else if (isCr && bytes[start] === LF) start += 1;
      if (this.atBorder) border = start;
      if (lf !== -1 && lf < start) lf = bytes.indexOf(LF, start);
      if (cr !== -1 && cr < start) cr = bytes.indexOf(CR, start);
    }
    this.gather(bytes.subarray(start));
    return border;
  }

  /** The stream has ended: an event without its blank line counts as read. */
  end(): void {
    if (this.lineBytes > 0) this.endLine();
    this.dispatch();
  }

  private gather(piece: Buffer): void {
    if (piece.length === 0) return;
    this.lineBytes += piece.length;
    const room = KEPT_BYTES - this.lineKept;
    if (room <= 0) return;
    const kept = piece.subarray(0, room);
    this.line.push(Buffer.from(kept));
    this.lineKept += kept.length;
  }

  private endLine(): void {
    const text = Buffer.concat(this.line).toString();
    const isBlank = this.lineBytes === 0;
    this.line = [];
    this.lineBytes = 0;
    this.lineKept = 0;
    if (isBlank) this.dispatch();
    else if (!text.startsWith(':')) this.field(text);
  }

  private field(text: string): void {
    this.fields += 1;
    const colon = text.indexOf(':');
    const name = colon === -1 ? text : text.slice(0, colon);
    const value = colon === -1 ? '' : text.slice(colon + 1).replace(/^ /, '');
    if (name === 'event') this.name = value;
    else if (name === 'error') this.hasErrorField = true;
    else if (name === 'data' && this.dataKept < KEPT_BYTES) {
      this.data.push(value);
      this.dataKept += value.length;
    }
  }

  private dispatch(): void {
    if (this.fields === 0) return;
    const event = {
      name: this.name,
      data: this.data.join('\n'),
      hasErrorField: this.hasErrorField,
    };
    this.fields = 0;
    this.name = '';
    this.data = [];
    this.dataKept = 0;
    this.hasErrorField = false;
    this.onEvent(event);
  }
}
