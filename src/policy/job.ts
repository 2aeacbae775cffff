declare const jobBrand: unique symbol;
declare const memberBrand: unique symbol;

/** Names one job; a lower-case UUIDv4 where Berth made it. */
export type JobId = string & { readonly [jobBrand]: true };

/** Names the person or service a job runs for: the unit of fairness. */
export type MemberId = string & { readonly [memberBrand]: true };

/** The name of a member's service class, a key of `Rules.tiers`; an unknown one counts as no bonus, weight 1. */
export type Tier = string;

/** What policy knows of a job that waits for the GPU. */
export interface WaitingJob {
  readonly id: JobId;
  readonly member: MemberId;
  readonly tier: Tier;
  /** The named band nearest to `base` (`nearestBand`); derived anew when the configuration changes. */
  readonly band: string;
  /** Base priority in points: a whole number within ±10000, higher runs sooner. */
  readonly base: number;
  /** The model the job needs, aliases resolved, so that it compares equal to the resident one. */
  readonly model: string;
  /** Unix milliseconds at which the job was accepted; a retry keeps it. */
  readonly arrivalMs: number;
  /** Rises by each accepted job, so that two of one millisecond have an order. */
  readonly sequence: number;
  /** What kind of work it is, where that is known: for estimates alone, no decision looks at it. */
  readonly work?: { readonly route: string; readonly kind: string };
  /** Unix milliseconds until which a job in backoff may not run; absent: at once. */
  readonly eligibleAtMs?: number;
}

/** Takes a string for a job's id; the caller vouches for it. */
export function jobId(text: string): JobId {
  return text as JobId;
}

/** Takes a string for a member's id; the caller vouches for it. */
export function memberId(text: string): MemberId {
  return text as MemberId;
}

/** Orders by arrival, then sequence, then id, for `sort`: negative when `a` came first. */
export function byArrival(a: WaitingJob, b: WaitingJob): number {
  return (
    a.arrivalMs - b.arrivalMs || a.sequence - b.sequence || (a.id < b.id ? -1 : Number(a.id > b.id))
  );
}
