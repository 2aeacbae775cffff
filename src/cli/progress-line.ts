import { SingleBar } from 'cli-progress';

/** What the line says: `fraction` from 0 to 1, a word or two before the bar, the rest after it. */
export interface ProgressState {
  readonly fraction: number;
  readonly before: string;
  readonly after: string;
}

/** Steps that the bar knows. */
const TOTAL = 1000;
/** Between two drawings, in ms: what is left grows less without news. */
const EVERY_MS = 500;

/** One line of a terminal with a bar that is drawn anew in its place. */
export class ProgressLine {
  private readonly bar: SingleBar;
  private readonly timer: NodeJS.Timeout;
  private readonly look: () => ProgressState | undefined;
  private isDrawn = false;

  /** @param look what to show at this moment; undefined: nothing yet */
  constructor(stream: NodeJS.WriteStream, look: () => ProgressState | undefined) {
    this.look = look;
    this.bar = new SingleBar({
      format: '{before} {bar} {percentage} % {after}',
      barCompleteChar: '#',
      barIncompleteChar: '.',
      barsize: 30,
      stream,
      gracefulExit: false,
    });
    this.timer = setInterval(() => this.draw(), EVERY_MS);
  }

  /** Draws what is so now. */
  draw(): void {
    const state = this.look();
    if (state === undefined) return;
    const value = Math.round(Math.min(1, Math.max(0, state.fraction)) * TOTAL);
    const words = { before: state.before, after: state.after };
    if (this.isDrawn) this.bar.update(value, words);
    else this.bar.start(TOTAL, value, words);
    this.isDrawn = true;
  }

  /** Draws the last state and leaves the line. */
  stop(): void {
    clearInterval(this.timer);
    this.draw();
    if (this.isDrawn) this.bar.stop();
  }
}
