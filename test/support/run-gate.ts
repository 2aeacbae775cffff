/** Holds the runs of a test's worker while it is shut; open at first. */
export class RunGate {
  private readonly waiting: (() => void)[] = [];
  private isShut = false;

  /** Runs that begin from now on are held. */
  shut(): void {
    this.isShut = true;
  }

  /** Lets go of what is held, and holds nothing more. */
  open(): void {
    this.isShut = false;
    for (const go of this.waiting.splice(0)) go();
  }

  /** How many runs are held. */
  get held(): number {
    return this.waiting.length;
  }

  /** Resolves at once, or when the gate is opened. */
  async pass(): Promise<void> {
    if (this.isShut) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }
}
