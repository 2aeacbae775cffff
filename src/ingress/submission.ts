import type { IncomingMessage } from 'node:http';
import type { Submission } from '../gateway/submit-job.ts';
import { baseBound } from '../policy/rules.ts';
import type { IntakeBody } from './body-intake.ts';
import type { Identity } from './identity.ts';
import type { RequestTerms } from './request-terms.ts';
import type { RouteMatch } from './route-table.ts';
import { headersUpstream } from './upstream-headers.ts';
import type { HeaderRules } from './upstream-headers.ts';

export type { HeaderRules };

/** A route whose requests become jobs. */
export type GpuRoute = Extract<RouteMatch, { needsGpu: true }>;

/** What was found out about a request before it becomes a job. */
export interface SubmissionFacts {
  /** Lower-case UUIDv4. */
  id: string;
  match: GpuRoute;
  model: string;
  body: IntakeBody;
  identity: Identity;
}

/** The job that a request asks for, from its headers and what was found out about it. */
export function submissionOf(
  request: IncomingMessage,
  { id, match, model, body, identity }: SubmissionFacts,
  headerRules: HeaderRules,
): Submission {
  const all = (name: string): string[] => request.headersDistinct[name] ?? [];
  return {
    id,
    head: {
      method: request.method ?? 'POST',
      target: request.url ?? '/',
      headers: headersUpstream(request, headerRules),
    },
    route: match.route,
    kind: match.kind,
    model,
    isStream: body.isStream,
    member: identity.member,
    tier: identity.tier,
    caps: identity.caps,
    mode: 'sync',
    body,
    webhook: all('x-berth-webhook'),
    priority: {
      llamaSwapPriority: all('x-llamaswap-priority'),
      xPriority: all('x-priority'),
      intent: all('x-berth-intent'),
      keyDefault: identity.defaultPriority,
      ceiling: identity.maxPriority,
    },
  };
}

/** The same for what would stop models under a running job: it goes before everything else that waits. */
export function submissionOfControl(
  request: IncomingMessage,
  facts: SubmissionFacts,
  headerRules: HeaderRules,
): Submission {
  const first = { llamaSwapPriority: [String(baseBound)], xPriority: [], intent: [] };
  return {
    ...submissionOf(request, facts, headerRules),
    priority: { ...first, keyDefault: 0, ceiling: null },
  };
}

/** What the terms of a request change of its job. */
export function jobTerms({
  isAsync,
  idempotency,
  deadlines,
}: RequestTerms): Pick<Submission, 'mode' | 'idempotency' | 'deadlines'> {
  return {
    mode: isAsync ? 'async' : 'sync',
    deadlines,
    ...(idempotency === undefined ? {} : { idempotency }),
  };
}
