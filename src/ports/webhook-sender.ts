/** One event on its way to whoever asked for it. */
export interface WebhookDelivery {
  /** The address as it was submitted, checked then. */
  address: string;
  /** The same at every attempt, so that a receiver knows a repeat; holds no dot. */
  id: string;
  /** The JSON text, byte for byte what is signed. */
  body: string;
}

/**
 * What came of one attempt.
 *
 * - delivered: a 2xx came.
 * - unwanted: 410, the receiver wants no more of it.
 * - forbidden: the address is none Berth calls; `reason` says why without the address.
 * - failed: anything else, redirects included; another attempt may help. `reason` is a status or an error's code.
 */
export type WebhookAttempt =
  | { kind: 'delivered' | 'unwanted'; status: number }
  | { kind: 'forbidden' | 'failed'; reason: string };

/** Carries events to addresses of strangers. */
export interface WebhookSender {
  /** One attempt, over within the sender's time limit; never throws for what the other side did. */
  send(delivery: WebhookDelivery): Promise<WebhookAttempt>;
}
