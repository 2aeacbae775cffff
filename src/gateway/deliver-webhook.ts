import type { EndedJob } from '../ports/ended-job.ts';
import type { Telemetry, WebhookResult } from '../ports/telemetry.ts';
import type { WebhookAttempt, WebhookSender } from '../ports/webhook-sender.ts';
import { jobEvent } from './job-event.ts';

/** What telling of ends needs. */
export interface DeliverDependencies {
  sender: WebhookSender;
  /** Opens what `sealedAddress` holds; throws when it was sealed with another key. */
  openAddress: (jobId: string, sealed: Buffer) => string;
  telemetry: Telemetry;
}

/** What the address of a webhook is bound to when it is sealed: the job, and the purpose. */
export const addressSealOf = (jobId: string): string => `${jobId} webhook`;

/**
 * Tells of one end once, and says what is next:
 *
 * 1. An address that cannot be opened any more, or that Berth does not call: given up, no repeat would help.
 * 2. A 2xx: delivered. 410: given up, the receiver said so.
 * 3. Anything else: retried, unless this was the last attempt.
 */
export async function deliverWebhook(
  job: EndedJob,
  { attempt, isLast }: { attempt: number; isLast: boolean },
  { sender, openAddress, telemetry }: DeliverDependencies,
): Promise<WebhookResult> {
  const told = (result: WebhookResult, host: string, reason?: string): WebhookResult => {
    telemetry.webhookTried({
      eventId: job.eventId,
      jobId: job.jobId,
      memberId: job.facts.member,
      result,
      attempt,
      host,
      ...(reason === undefined ? {} : { reason }),
    });
    return result;
  };
  let address: string;
  try {
    address = openAddress(job.jobId, job.sealedAddress);
  } catch {
    return told('given_up', '', 'the address was sealed with another key');
  }
  const host = URL.canParse(address) ? new URL(address).hostname : '';
  const came = await sender.send({ address, id: job.eventId, body: jobEvent(job) });
  if (came.kind === 'delivered') return told('delivered', host);
  if (came.kind === 'failed' && !isLast) return told('retried', host, came.reason);
  return told('given_up', host, reasonOf(came));
}

const reasonOf = (came: WebhookAttempt): string =>
  'reason' in came ? came.reason : `status ${came.status}`;
