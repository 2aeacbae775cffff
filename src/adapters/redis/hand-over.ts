/** How long after a job was handed out its request is surely on its way, in ms. */
const UNDER_WAY_AFTER_MS = 2;
/** A settlement whose reply does not come holds nothing up for longer, in ms. */
const LONGEST_MS = 100;

/**
 * The moment between two runs, in which the GPU has nothing to do. What can wait, waits until it is over: books,
 * records and reports must not stand between the end of one run and the request of the next.
 *
 *     over -> begin -> under way -> (2 ms) -> over, and everything put off runs in its order
 */
export class HandOver {
  private isUnderWay = false;
  private timer: NodeJS.Timeout | undefined;
  private putOff: (() => void)[] = [];
  private readonly onError: (error: Error) => void;

  constructor(onError: (error: Error) => void) {
    this.onError = onError;
  }

  /** A run has ended; what comes next is being asked for. */
  begin(): void {
    this.flush();
    this.isUnderWay = true;
    this.timer = setTimeout(() => this.flush(), LONGEST_MS);
  }

  /** The next job was handed out. */
  handedOut(): void {
    clearTimeout(this.timer);
    this.isUnderWay = true;
    this.timer = setTimeout(() => this.flush(), UNDER_WAY_AFTER_MS);
  }

  /** Runs `work` when the moment is over: at once if there is none. What it throws is told to `onError`. */
  after(work: () => void): void {
    this.putOff.push(work);
    if (!this.isUnderWay) this.flush();
  }

  /** Resolves when the moment is over. */
  async over(): Promise<void> {
    if (!this.isUnderWay) return;
    await new Promise<void>((resolve) => this.after(resolve));
  }

  /** The moment is over now. */
  flush(): void {
    clearTimeout(this.timer);
    this.isUnderWay = false;
    for (let work = this.putOff.shift(); work !== undefined; work = this.putOff.shift()) {
      try {
        work();
      } catch (error) {
        this.onError(error instanceof Error ? error : new Error(String(error)));
      }
    }
  }
}
