/** Whose line it is: llama-swap's own, or that of the model with the id that is given. */
export type LogSource =
  { readonly kind: 'proxy' } | { readonly kind: 'upstream'; readonly modelId: string };

/** Which lines somebody wants; `all`, one of the kinds, or one model's. */
export type LogChoice = 'all' | 'proxy' | 'upstream' | { readonly modelId: string };

interface Line {
  readonly source: LogSource;
  readonly text: string;
}

const keptLines = 500;

/** The last 500 lines of the log, and who listens. */
export class LogBook {
  readonly #lines: Line[] = [];
  readonly #listeners = new Set<(line: Line) => void>();

  /** Adds a line; the line end is not part of `text`. */
  write(source: LogSource, text: string): void {
    const line = { source, text: `${text}\n` };
    this.#lines.push(line);
    if (this.#lines.length > keptLines) this.#lines.shift();
    for (const listener of this.#listeners) listener(line);
  }

  /** What is kept of those lines, oldest first. */
  history(choice: LogChoice): string {
    return this.#lines
      .filter((line) => isChosen(line, choice))
      .map(({ text }) => text)
      .join('');
  }

  /** Calls back with every line from now on; the function returned ends that. */
  listen(choice: LogChoice, onLine: (text: string, source: LogSource) => void): () => void {
    const listener = (line: Line): void => {
      if (isChosen(line, choice)) onLine(line.text, line.source);
    };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

function isChosen({ source }: Line, choice: LogChoice): boolean {
  if (choice === 'all') return true;
  if (typeof choice === 'string') return source.kind === choice;
  return source.kind === 'upstream' && source.modelId === choice.modelId;
}
