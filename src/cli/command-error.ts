/** What a command ends with. 3 to 5: the first digit of the model server's status. */
export const EXIT = { refused: 1, endedOtherwise: 2, interrupted: 130 } as const;

/** Something a command cannot go on after; the message is one line for the person at the terminal. */
export class CommandError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.refused, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** An answer of 400 or above that was asked for nothing but success. */
export class Refusal extends CommandError {
  readonly status: number;
  /** Berth's code; null where the error is not Berth's. */
  readonly code: string | null;
  /** The field at fault. */
  readonly param: string | null;
  /** Berth's own words. */
  readonly what: string;

  constructor({ status, code, param, what }: Pick<Refusal, 'status' | 'code' | 'param' | 'what'>) {
    const whose = code === null ? `answered with ${status}` : `${code}, ${status}`;
    super(`${what} (${whose})`);
    this.status = status;
    this.code = code;
    this.param = param;
    this.what = what;
  }
}
