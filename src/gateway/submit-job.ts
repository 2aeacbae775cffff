import { basePriority } from '../policy/priority.ts';
import type { BasePriority, PriorityInput } from '../policy/priority.ts';
import type { Rules } from '../policy/rules.ts';
import type {
  IdempotencyKey,
  JobDeadlines,
  JobFacts,
  JobQueue,
  MemberCaps,
  Submitted,
} from '../ports/job-queue.ts';
import type { JobKind, Telemetry } from '../ports/telemetry.ts';
import { addressSealOf } from './deliver-webhook.ts';
import type { RequestHead } from './run-job.ts';
import { webhookOf } from './webhook-request.ts';

/** A request that is to become a job. */
export interface Submission {
  /** Lower-case UUIDv4. */
  id: string;
  head: RequestHead;
  route: string;
  kind: JobKind;
  model: string;
  isStream: boolean;
  member: string;
  /** One that is not configured counts as free. */
  tier: string;
  /** Caps of the member. */
  caps: MemberCaps;
  mode: 'sync' | 'async';
  idempotency?: IdempotencyKey;
  deadlines?: JobDeadlines;
  body: { bytes: number; sha256: string; inline: Buffer | null };
  priority: Omit<PriorityInput, 'modelFloor'>;
  /** Values of `X-Berth-Webhook`. */
  webhook?: readonly string[];
}

/** What submitting needs. */
export interface SubmitDependencies {
  queue: JobQueue;
  rules: Rules;
  seal: (jobId: string, plain: Buffer) => Buffer;
  /** What is wrong with the address of a webhook, without repeating it. */
  webhookFault: (address: string) => string | undefined;
  telemetry: Telemetry;
}

/** A request that became a job, or was found to have become one before. */
export interface AdmittedJob {
  /** How the request was ranked; a job that was known keeps its own rank. */
  ranked: BasePriority;
  stored: Submitted;
  facts: JobFacts;
}

/** Ranks the request, seals its head and queues it. Durable when it resolves; throws GatewayError otherwise. */
export async function submitJob(
  submission: Submission,
  dependencies: SubmitDependencies,
): Promise<AdmittedJob> {
  const { rules, telemetry, queue } = dependencies;
  const webhook = webhookOf(submission.webhook ?? [], dependencies.webhookFault);
  const floor = rules.modelFloors[submission.model];
  const input =
    floor === undefined ? submission.priority : { ...submission.priority, modelFloor: floor };
  const ranked = basePriority(input, rules);
  for (const notice of ranked.notices) telemetry.priorityNoticed({ notice });
  const tier = Object.hasOwn(rules.tiers, submission.tier) ? submission.tier : 'free';
  const facts: JobFacts = {
    version: 1,
    method: submission.head.method,
    route: submission.route,
    kind: submission.kind,
    model: submission.model,
    stream: submission.isStream,
    member: submission.member,
    tier,
    base: ranked.base,
    band: ranked.band,
    mode: submission.mode,
    bodyBytes: submission.body.bytes,
    bodySha256: submission.body.sha256,
  };
  const stored = await queue.submit({
    id: submission.id,
    facts,
    points: ranked.base + (rules.tiers[tier]?.bonus ?? 0),
    sealedHead: dependencies.seal(submission.id, Buffer.from(JSON.stringify(submission.head))),
    body: submission.body.inline,
    caps: submission.caps,
    ...(submission.idempotency === undefined ? {} : { idempotency: submission.idempotency }),
    ...(submission.deadlines === undefined ? {} : { deadlines: submission.deadlines }),
    ...(webhook === undefined
      ? {}
      : { sealedWebhook: dependencies.seal(addressSealOf(submission.id), Buffer.from(webhook)) }),
  });
  if (!stored.isNew) return { ranked, stored, facts };
  telemetry.jobAdmitted({
    jobId: submission.id,
    memberId: submission.member,
    band: ranked.band,
    model: submission.model,
    tier,
    kind: submission.kind,
    basePriority: ranked.base,
    bodyBytes: submission.body.bytes,
    isAsync: submission.mode === 'async',
  });
  return { ranked, stored, facts };
}
