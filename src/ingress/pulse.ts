/** When a silent stream gives signs of life. */
export interface PulseTimes {
  /** Silence before the first, in ms. */
  afterMs: number;
  /** Between those that follow, in ms. */
  everyMs: number;
}

/** Beats while nothing else is sent: first after `afterMs` of silence, then every `everyMs`, until it is stopped. */
export class Pulse {
  private readonly times: PulseTimes;
  private readonly beat: () => void;
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;
  /** Whether the timer that runs is for the first beat of a silence. */
  private isFirst = false;

  /** Starts at once. */
  constructor(times: PulseTimes, beat: () => void) {
    this.times = times;
    this.beat = beat;
    this.touch();
  }

  /** Something was sent: the silence begins anew. */
  touch(): void {
    if (this.isStopped) return;
    if (this.isFirst) this.timer?.refresh();
    else {
      this.isFirst = true;
      this.wait(this.times.afterMs);
    }
  }

  /** No more beats. */
  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  private wait(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.isFirst = false;
      this.wait(this.times.everyMs);
      this.beat();
    }, ms);
  }
}
