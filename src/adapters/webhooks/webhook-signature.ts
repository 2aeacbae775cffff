import { createHmac } from 'node:crypto';

/** What all secrets of webhooks begin with. */
const PREFIX = 'whsec_';

/**
 * The signature header of Standard Webhooks: `v1,` and the base64 HMAC-SHA256 of `id.timestamp.body`.
 *
 * @param secret - `whsec_` and the key in base64
 * @param timestamp - unix seconds of this attempt: receivers refuse old ones
 */
export function webhookSignature(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: number; body: string },
): string {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}
