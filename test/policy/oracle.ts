import type { WaitingJob } from '../../src/policy/job.ts';
import type { Rules } from '../../src/policy/rules.ts';

/**
 * The scheduling rule a second time, written to be obvious rather than fast and sharing nothing with the
 * implementation: everything is derived again from the events, with plain loops over all waiting jobs.
 */
export type Happened =
  | { kind: 'arrive'; job: WaitingJob }
  | { kind: 'remove'; id: string }
  | { kind: 'dispatch'; id: string; atMs: number; residentModel: string | null }
  | { kind: 'end'; atMs: number; usedMs: number }
  | { kind: 'handBack'; atMs: number; usedMs: number; eligibleAtMs: number };

export interface OracleBand {
  clock: number;
  lastEnd: number;
  V: number;
  F: Record<string, number>;
  S: Record<string, number>;
  passed: Record<string, number>;
}

export interface Oracle {
  bands: Record<string, OracleBand>;
  waiting: WaitingJob[];
  running: {
    job: WaitingJob;
    start: number;
    S: number;
    passed: number;
    clock: number;
    passedOver: string[];
  } | null;
}

const bonusOf = (job: WaitingJob, rules: Rules): number => rules.tiers[job.tier]?.bonus ?? 0;
const weightOf = (job: WaitingJob, rules: Rules): number => rules.tiers[job.tier]?.weight ?? 1;

function first(
  jobs: WaitingJob[],
  better: (a: WaitingJob, b: WaitingJob) => boolean,
): WaitingJob | undefined {
  const [head, ...others] = jobs;
  return head && others.reduce((best, job) => (better(job, best) ? job : best), head);
}

function cameBefore(a: WaitingJob, b: WaitingJob): boolean {
  return a.arrivalMs < b.arrivalMs || (a.arrivalMs === b.arrivalMs && a.sequence < b.sequence);
}

/** What a point is worth, in whole milliseconds: seconds with a fraction are not exact, and ties are decided here. */
const pointOf = (rules: Rules): number => Math.round(rules.aging.divisorSeconds * 1000);

/** Points without aging, in milliseconds' worth. */
function worth(job: WaitingJob, residentModel: string | null, rules: Rules): number {
  const affinity = job.model === residentModel ? rules.affinity.bonus : 0;
  return (job.base + bonusOf(job, rules) + affinity) * pointOf(rules);
}

function headsOf(
  band: string,
  jobs: WaitingJob[],
  residentModel: string | null,
  rules: Rules,
): WaitingJob[] {
  const inBand = jobs.filter((job) => job.band === band);
  const members = [...new Set(inBand.map((job) => job.member))];
  return members.flatMap((member) => {
    const literal = (job: WaitingJob): number => worth(job, residentModel, rules) - job.arrivalMs;
    return (
      first(
        inBand.filter((job) => job.member === member),
        (a, b) => literal(a) > literal(b) || (literal(a) === literal(b) && cameBefore(a, b)),
      ) ?? []
    );
  });
}

/** The job that should go next, by looking at every waiting job. */
export function oraclePick(
  oracle: Oracle,
  residentModel: string | null,
  nowMs: number,
  rules: Rules,
): WaitingJob | undefined {
  const eligible = oracle.waiting.filter((job) => (job.eligibleAtMs ?? 0) <= nowMs);
  const candidates = Object.entries(oracle.bands).flatMap(([name, band]) => {
    const heads = headsOf(name, eligible, residentModel, rules);
    const best = Math.max(...heads.map((job) => worth(job, residentModel, rules)));
    const key = (job: WaitingJob): number => {
      const own = worth(job, residentModel, rules);
      const counted = (band.passed[job.member] ?? NaN) >= best - own ? best : own;
      return (band.S[job.member] ?? NaN) - counted;
    };
    const run = first(heads, (a, b) => key(a) < key(b) || (key(a) === key(b) && cameBefore(a, b)));
    if (!run) return [];
    const claims = eligible
      .filter((job) => job.band === name)
      .map((job) => {
        const since =
          rules.aging.clock === 'job' ? job.arrivalMs : Math.max(band.clock, job.arrivalMs);
        return worth(job, residentModel, rules) + (nowMs - since);
      });
    return [{ run, claim: Math.max(...claims) }];
  });
  const highest = Math.max(...candidates.map(({ claim }) => claim));
  return first(
    candidates.filter(({ claim }) => claim === highest).map(({ run }) => run),
    cameBefore,
  );
}

/** What the books should say after these events. */
export function replay(events: readonly Happened[], rules: Rules): Oracle {
  const bands: Record<string, OracleBand> = {};
  for (const name of Object.keys(rules.bands)) {
    bands[name] = { clock: 0, lastEnd: 0, V: 0, F: {}, S: {}, passed: {} };
  }
  const oracle: Oracle = { bands, waiting: [], running: null };
  for (const event of events) happen(oracle, event, rules);
  return oracle;
}

/** Enters one event in the books; it must fit what came before. */
export function happen(oracle: Oracle, event: Happened, rules: Rules): void {
  const D = pointOf(rules);
  const tierBonuses = Object.values(rules.tiers).map((tier) => tier.bonus);
  const offset = Math.max(...tierBonuses) + rules.affinity.bonus;
  const values = Object.values(rules.bands);
  const span = Math.max(...values) - Math.min(...values);
  const bandOf = (job: WaitingJob): OracleBand => sure(oracle.bands[job.band]);
  const waitsInLane = (job: WaitingJob): boolean =>
    oracle.waiting.some((other) => other.band === job.band && other.member === job.member);

  if (event.kind === 'arrive') {
    const { job } = event;
    const band = bandOf(job);
    if (!waitsInLane(job)) {
      band.S[job.member] = Math.max(band.F[job.member] ?? 0, band.V);
      band.passed[job.member] = 0;
    }
    if (!oracle.waiting.some((other) => other.band === job.band)) {
      band.clock = Math.max(job.arrivalMs, band.lastEnd);
    }
    oracle.waiting.push(job);
  } else if (event.kind === 'remove') {
    const job = sure(oracle.waiting.find((other) => other.id === event.id));
    oracle.waiting = oracle.waiting.filter((other) => other.id !== event.id);
    if (!waitsInLane(job) && oracle.running?.job.band === job.band) {
      oracle.running.passedOver = oracle.running.passedOver.filter(
        (member) => member !== job.member,
      );
    }
    forgetIfIdle(oracle, job.band);
  } else if (event.kind === 'dispatch') {
    const job = sure(oracle.waiting.find((other) => other.id === event.id));
    const band = bandOf(job);
    const S = sure(band.S[job.member]);
    const lanes = [
      ...new Set(oracle.waiting.filter((o) => o.band === job.band).map((o) => o.member)),
    ];
    const eligible = oracle.waiting.filter((other) => (other.eligibleAtMs ?? 0) <= event.atMs);
    const passedOver = headsOf(job.band, eligible, event.residentModel, rules)
      .filter((head) => {
        const other = sure(band.S[head.member]);
        return other < S || (other === S && cameBefore(head, job));
      })
      .map((head) => head.member);
    const leastS = Math.min(...lanes.map((member) => sure(band.S[member])));
    band.V = Math.max(band.V, leastS, S - D * offset);
    const passed = sure(band.passed[job.member]);
    oracle.running = { job, start: event.atMs, S, passed, clock: band.clock, passedOver };
    oracle.waiting = oracle.waiting.filter((other) => other !== job);
  } else {
    const run = sure(oracle.running);
    const { job } = run;
    const band = bandOf(job);
    const cost = event.kind === 'end' ? Math.max(100, event.usedMs) : event.usedMs;
    const S = run.S + Math.ceil(cost / weightOf(job, rules));
    band.F[job.member] = S;
    for (const member of run.passedOver) {
      const stillWaits = oracle.waiting.some((o) => o.band === job.band && o.member === member);
      if (stillWaits) band.passed[member] = sure(band.passed[member]) + cost;
    }
    oracle.running = null;
    if (event.kind === 'end') {
      if (waitsInLane(job)) {
        band.S[job.member] = S;
        band.passed[job.member] = 0;
      }
      const earliest = run.start - 2 * D * (span + offset);
      band.clock = Math.min(event.atMs, Math.max(band.clock, earliest) + rules.aging.charge * cost);
      band.lastEnd = event.atMs;
      forgetIfIdle(oracle, job.band);
    } else {
      band.S[job.member] = S;
      band.passed[job.member] = run.passed;
      band.clock = run.clock;
      oracle.waiting.push({ ...job, eligibleAtMs: event.eligibleAtMs });
    }
  }
}

function forgetIfIdle(oracle: Oracle, name: string): void {
  const busy = oracle.waiting.some((job) => job.band === name) || oracle.running?.job.band === name;
  if (busy) return;
  const band = sure(oracle.bands[name]);
  band.V = 0;
  band.F = {};
}

function sure<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error('the oracle has lost its thread');
  return value;
}
