/** Whose line it is: llama-swap's own, or that of the model with the id that is given. */
export type LogSource =
  { readonly kind: 'proxy' } | { readonly kind: 'upstream'; readonly modelId: string };

/** Which lines somebody wants; `all`, one of the kinds, or one model's. */
export type LogChoice = 'all' | 'proxy' | 'upstream' | { readonly modelId: string };

interface Line {
  readonly order: number;
  readonly source: LogSource;
  readonly text: string;
}

const keptLines = 500;

/** The last 500 lines of either kind of source, and who listens. */
export class LogBook {
  readonly #lines = { proxy: [] as Line[], upstream: [] as Line[] };
  readonly #listeners = new Set<(line: Line) => void>();
  #count = 0;

  /** Adds a line; the line end is not part of `text`. */
  write(source: LogSource, text: string): void {
    this.#count += 1;
    const line = { order: this.#count, source, text: `${text}\n` };
    const lines = this.#lines[source.kind];
    lines.push(line);
    if (lines.length > keptLines) lines.shift();
    for (const listener of this.#listeners) listener(line);
  }

  /** What is kept of those lines, oldest first. */
  history(choice: LogChoice): string {
    return [...this.#lines.proxy, ...this.#lines.upstream]
      .filter((line) => isChosen(line, choice))
      .toSorted((a, b) => a.order - b.order)
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
