/** One thing wrong with the configuration. */
export interface ConfigurationFault {
  /** The variable, or the key's path in the configuration file (`leases.text.baseSeconds`). */
  readonly path: string;
  /** What is wrong and what is needed, with the numbers; never a secret's value. */
  readonly what: string;
}

/** Thrown once with every fault found, so that a second start does not find the next one. */
export class ConfigurationError extends Error {
  /** One `<path>: <what>` a fault, in the order of the variables, then of the file. */
  readonly lines: readonly string[];

  constructor(faults: readonly ConfigurationFault[]) {
    const lines = faults.map((fault) => `${fault.path}: ${fault.what}`);
    super(lines.join('\n'));
    this.name = 'ConfigurationError';
    this.lines = lines;
  }
}
