/** A start that cannot be; the message is the one line for the operator. */
export class StartRefused extends Error {}
