const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Longest key or value that is kept, in bytes: a model id is far shorter. */
const KEPT_BYTES = 4096;

/**
 * Finds scalar fields of a JSON document's top level while its bytes go by, in constant memory. As lenient as the
 * scanner llama-swap uses: invalid JSON is no error, and of duplicate keys the first counts.
 *
 * States: outside any string, tracking depth; inside a string; collecting a bare value.
 */
export class TopLevelScan {
  private readonly wanted: ReadonlySet<string>;
  private readonly found = new Map<string, string | boolean | null>();
  private depth = 0;
  private inString = false;
  private escaped = false;
  private isKept = false;
  private text: number[] = [];
  private key: string | undefined;
  private isValueNext = false;
  private bare = '';
  /** The document has ended; what follows it counts no more. */
  private isOver = false;

  constructor(wanted: readonly string[]) {
    this.wanted = new Set(wanted);
  }

  /** Takes the next bytes; any split is fine. */
  push(bytes: Uint8Array): void {
    let quote = -2;
    for (let at = 0; at < bytes.length; at += 1) {
      if (this.isOver) return;
      if (this.inString && !this.isKept && !this.escaped) {
        // Long values of no interest, pictures say, are leapt over.
        if (quote !== -1 && quote < at) quote = bytes.indexOf(QUOTE, at);
        const end = quote === -1 ? bytes.length : quote;
        const backslash = bytes.subarray(at, end).indexOf(BACKSLASH);
        at = backslash < 0 ? end : at + backslash;
        if (at >= bytes.length) return;
      }
      this.step(bytes[at] ?? 0);
    }
  }

  /** The field as a string (numbers and booleans as written), or undefined. */
  string(name: string): string | undefined {
    const value = this.found.get(name);
    return value === undefined || value === null ? undefined : String(value);
  }

  /** Whether the field is the literal true. */
  isTrue(name: string): boolean {
    return this.found.get(name) === true;
  }

  private step(byte: number): void {
    if (this.inString) {
      this.inText(byte);
      return;
    }
    switch (byte) {
      case QUOTE:
        this.inString = true;
        this.text = [];
        this.isKept = this.depth === 1 && (!this.isValueNext || this.isWanted());
        break;
      case 0x7b: // {
      case 0x5b: // [
        this.depth += 1;
        // A document that is an array has no fields; a nested value is none we want.
        if (this.depth === 1) this.isValueNext = byte === 0x5b;
        else if (this.depth === 2) {
          // It has a value, and that is no scalar: an equal key that follows does not count.
          if (this.isValueNext) this.keep(null);
          this.key = undefined;
        }
        break;
      case 0x7d: // }
      case 0x5d: // ]
        this.endBare();
        this.isOver = this.depth === 1;
        this.depth = Math.max(0, this.depth - 1);
        break;
      case 0x3a: // :
        if (this.depth === 1) {
          this.isValueNext = true;
          this.bare = '';
        }
        break;
      case 0x2c: // ,
        this.endBare();
        if (this.depth === 1) {
          this.isValueNext = false;
          this.key = undefined;
        }
        break;
      default:
        if (this.depth === 1 && this.isValueNext && byte > 0x20 && this.bare.length < 64) {
          this.bare += String.fromCharCode(byte);
        }
    }
  }

  private inText(byte: number): void {
    if (this.escaped) this.escaped = false;
    else if (byte === BACKSLASH) this.escaped = true;
    else if (byte === QUOTE) {
      this.inString = false;
      this.endString();
      return;
    }
    if (this.isKept && this.text.length < KEPT_BYTES) this.text.push(byte);
  }

  private endString(): void {
    if (!this.isKept) return;
    const value = unescape(Buffer.from(this.text).toString());
    if (this.isValueNext) this.keep(value);
    else this.key = value;
  }

  private endBare(): void {
    if (this.depth !== 1 || !this.isValueNext || this.bare === '') return;
    const { bare } = this;
    this.bare = '';
    if (bare === 'true' || bare === 'false') this.keep(bare === 'true');
    else this.keep(/^-?\d/.test(bare) ? bare : null);
  }

  private isWanted(): boolean {
    return this.key !== undefined && this.wanted.has(this.key) && !this.found.has(this.key);
  }

  private keep(value: string | boolean | null): void {
    if (this.isWanted() && this.key !== undefined) this.found.set(this.key, value);
  }
}

function unescape(raw: string): string {
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    return raw;
  }
}
