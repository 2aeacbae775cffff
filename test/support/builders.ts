import { nearestBand } from '../../src/policy/band.ts';
import { jobId, memberId, type WaitingJob } from '../../src/policy/job.ts';
import { defaultRules, type Rules } from '../../src/policy/rules.ts';

/** What a test wants to say about a job; the rest is made up. */
export interface JobFacts {
  id?: string;
  member?: string;
  tier?: string;
  base?: number;
  band?: string;
  model?: string;
  arrivalMs?: number;
  sequence?: number;
  eligibleAtMs?: number;
}

let made = 0;

/** A waiting job: by default a normal one of a free member; each is made later than the one before. */
export function aJob(facts: JobFacts = {}): WaitingJob {
  made += 1;
  const { id = `job-${made}`, member = 'member', base = 0, ...rest } = facts;
  return {
    id: jobId(id),
    member: memberId(member),
    tier: 'free',
    band: nearestBand(base, defaultRules),
    base,
    model: 'model',
    arrivalMs: 0,
    sequence: made,
    ...rest,
  };
}

/** The default rules with some of them replaced. */
export function rulesWith(changes: Partial<Rules>): Rules {
  return { ...defaultRules, ...changes };
}
