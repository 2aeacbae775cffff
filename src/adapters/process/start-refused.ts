/** A start that must not or cannot be; the message is the one line for the operator. */
export class StartRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartRefused';
  }
}
