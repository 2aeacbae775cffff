import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** How much of a process's last words is kept, in lines and in characters. */
const MOST_LINES = 20;
const MOST_CHARACTERS = 8192;

/** Keeps the end of a text that arrives in pieces, whatever its length. */
export class LastLines {
  #text = '';

  /** Takes the next piece, cut anywhere. */
  add(piece: string): void {
    this.#text = (this.#text + piece).slice(-MOST_CHARACTERS);
  }

  /** The last 20 lines at most, oldest first; empty ones do not count. */
  lines(): string[] {
    return lastLinesOf(this.#text);
  }
}

/** The last lines of a file; none when it cannot be read. */
export function lastLinesOfFile(path: string): string[] {
  try {
    const file = openSync(path, 'r');
    try {
      const size = fstatSync(file).size;
      const buffer = Buffer.alloc(Math.min(size, MOST_CHARACTERS));
      readSync(file, buffer, 0, buffer.length, size - buffer.length);
      return lastLinesOf(buffer.toString('utf8'));
    } finally {
      closeSync(file);
    }
  } catch {
    return [];
  }
}

function lastLinesOf(text: string): string[] {
  const lines = text.split('\n').map((line) => line.trimEnd());
  return lines.filter((line) => line !== '').slice(-MOST_LINES);
}
