const QUOTE = 34;
const BACKSLASH = 92;
const OPEN = new Set([91, 123]);
const CLOSE = new Set([93, 125]);
const BLANK = new Set([9, 10, 13, 32]);

/**
 * Tells whether a JSON text that passes by has come to its end, without keeping it: every bracket and string is
 * closed. Says nothing of whether it is valid otherwise.
 */
export class JsonBalance {
  private depth = 0;
  private isInString = false;
  private isEscaped = false;
  private hasValue = false;

  /** Reads on. */
  push(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.isInString) at = this.readString(bytes, at);
      else this.readByte(bytes[at] ?? 0);
    }
  }

  /** Whether a value has begun and nothing of it is open. */
  get isWhole(): boolean {
    return this.hasValue && this.depth === 0 && !this.isInString;
  }

  private readByte(byte: number): void {
    if (byte === QUOTE) this.isInString = true;
    else if (OPEN.has(byte)) this.depth += 1;
    else if (CLOSE.has(byte)) this.depth -= 1;
    if (!BLANK.has(byte)) this.hasValue = true;
  }

  /** Reads a string from `at` to its end or the end of these bytes; returns the last place read. */
  private readString(bytes: Buffer, at: number): number {
    if (this.isEscaped) {
      this.isEscaped = false;
      return at;
    }
    const quote = bytes.indexOf(QUOTE, at);
    const end = quote === -1 ? bytes.length : quote;
    // An uneven number of backslashes before the quote (or the end) escapes what follows.
    let slashes = 0;
    while (end - 1 - slashes >= at && bytes[end - 1 - slashes] === BACKSLASH) slashes += 1;
    const isOdd = slashes % 2 === 1;
    if (quote === -1) this.isEscaped = isOdd;
    else if (!isOdd) this.isInString = false;
    return end;
  }
}
