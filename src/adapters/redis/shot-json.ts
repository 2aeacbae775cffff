import type { NextShot, ShotJob } from '../../ports/film-store.ts';
import type { NewJob } from '../../ports/job-queue.ts';
import type { WaitingJob } from '../../policy/job.ts';
import type { Rules } from '../../policy/rules.ts';
import { bullClass } from './bull-class.ts';
import { openFacts, readFacts } from './journal-entry.ts';

/** A shot as the scripts are told of it; see lua/films.lua. */
export interface ShotJson {
  id: string;
  number: number;
  name: string;
  data: string;
  attempts: number;
  cls: number;
  band: string;
  member: string;
  facts: string;
  startByMs?: number;
  startWithinMs?: number;
  cancelAfterMs?: number;
  hook?: string;
}

/** A job's deadlines and sealed webhook as the scripts are told of them; see lua/connections.lua. */
export function termsJson({
  deadlines,
  sealedWebhook,
}: Pick<NewJob, 'deadlines' | 'sealedWebhook'>): Pick<
  ShotJson,
  'startByMs' | 'startWithinMs' | 'cancelAfterMs' | 'hook'
> {
  const { start, cancelAfterMs } = deadlines ?? {};
  return {
    ...(start === undefined
      ? {}
      : 'byMs' in start
        ? { startByMs: start.byMs }
        : { startWithinMs: start.withinMs }),
    ...(cancelAfterMs === undefined ? {} : { cancelAfterMs }),
    ...(sealedWebhook === undefined ? {} : { hook: sealedWebhook.toString('base64') }),
  };
}

/** The part of a shot that is JSON; sealed head and body travel beside it. */
export function shotJson(shot: ShotJob): ShotJson {
  const { id, facts, points, maxAttempts } = shot;
  return {
    id,
    number: facts.film.shot,
    name: facts.route,
    data: JSON.stringify(facts),
    attempts: maxAttempts,
    cls: bullClass(points),
    band: facts.band,
    member: facts.member,
    facts: openFacts(facts),
    ...termsJson(shot),
  };
}

/** What a script is told of the next shot: JSON fields, sealed head, body. */
export function offerOf(next: NextShot | undefined): [fields: object, head: Buffer, body: Buffer] {
  const none = Buffer.alloc(0);
  if (next === undefined) return [{}, none, none];
  if ('reason' in next) return [{ reason: next.reason }, none, none];
  const { job } = next;
  return [{ shot: shotJson(job) }, job.sealedHead, job.body ?? none];
}

/** The next shot as policy will know it when it arrives at that time, behind everybody of the same moment. */
export function arrivingShot(
  next: NextShot | undefined,
  atMs: number,
  rules: Rules,
): WaitingJob | undefined {
  if (next === undefined || 'reason' in next) return undefined;
  const { id, facts } = next.job;
  const json = `${openFacts(facts)},"a":${atMs},"s":${Number.MAX_SAFE_INTEGER}}`;
  return readFacts(id, json, rules);
}
