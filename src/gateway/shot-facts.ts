import { basePriority } from '../policy/priority.ts';
import type { PriorityInput } from '../policy/priority.ts';
import type { Rules } from '../policy/rules.ts';
import type { JobDeadlines } from '../ports/job-queue.ts';
import type { JobKind } from '../ports/telemetry.ts';
import type { ShotTemplate, Take } from './film-template.ts';
import type { RequestHead } from './run-job.ts';

/** A shot of which everything was found out that a request's admission finds out. */
export interface AdmittedShot {
  readonly head: RequestHead;
  readonly route: string;
  readonly kind: JobKind;
  readonly model: string;
  readonly isStream: boolean;
  readonly member: string;
  /** One that is not configured counts as free. */
  readonly tier: string;
  readonly priority: Omit<PriorityInput, 'modelFloor'>;
  readonly body: ShotTemplate['body'];
  readonly take: readonly Take[];
  readonly deadlines: JobDeadlines;
  readonly webhook: string | undefined;
}

/** The shot's template, ranked as any request is. */
export function templateOf(shot: AdmittedShot, rules: Rules): ShotTemplate {
  const floor = rules.modelFloors[shot.model];
  const input = floor === undefined ? shot.priority : { ...shot.priority, modelFloor: floor };
  const ranked = basePriority(input, rules);
  const tier = Object.hasOwn(rules.tiers, shot.tier) ? shot.tier : 'free';
  return {
    head: shot.head,
    points: ranked.base + (rules.tiers[tier]?.bonus ?? 0),
    body: shot.body,
    take: shot.take,
    deadlines: shot.deadlines,
    ...(shot.webhook === undefined ? {} : { webhook: shot.webhook }),
    facts: {
      version: 1,
      method: shot.head.method,
      route: shot.route,
      kind: shot.kind,
      model: shot.model,
      stream: shot.isStream,
      member: shot.member,
      tier,
      base: ranked.base,
      band: ranked.band,
      mode: 'async',
    },
  };
}
