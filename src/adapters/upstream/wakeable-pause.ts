/** The wait between two rounds of a loop, which others may cut short. */
export class WakeablePause {
  private wakeUp: () => void = () => undefined;
  private isEnded = false;

  /** Waits so many ms, or until `wake`; not at all once ended. */
  async wait(ms: number): Promise<void> {
    if (this.isEnded) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Cuts the present wait short; does nothing between waits. */
  wake(): void {
    this.wakeUp();
  }

  /** Cuts the present wait short and all later ones. */
  end(): void {
    this.isEnded = true;
    this.wakeUp();
  }
}
