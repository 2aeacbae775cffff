/** Models a metric tells apart at most; a series each costs memory in every Prometheus that scrapes. */
const mostModels = 100;

/** Bounds the `model` label: clients may send any name. */
export class ModelLabels {
  private readonly known = new Set<string>();

  /** Adds ids of the model server's list until 100 are known; one that was known stays, its series exist. */
  add(modelIds: readonly string[]): void {
    for (const id of modelIds) {
      if (this.known.size >= mostModels) return;
      this.known.add(id);
    }
  }

  /** The id if it is known, else `other`. */
  labelOf(model: string): string {
    return this.known.has(model) ? model : 'other';
  }
}
