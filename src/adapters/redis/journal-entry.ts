import { nearestBand } from '../../policy/band.ts';
import { jobId, memberId, type MemberId, type WaitingJob } from '../../policy/job.ts';
import type { LedgerEvent } from '../../policy/ledger-event.ts';
import type { Rules } from '../../policy/rules.ts';
import type { JobFacts } from '../../ports/job-queue.ts';

/** An entry of the journal stream, as Redis replies it: its id `version-epoch`, and field, value, … */
export type RawJournalEntry = readonly [id: string, fields: readonly string[]];

/** A place in the journal. `epoch` changes when the count had to start over. */
export interface JournalPlace {
  readonly version: number;
  readonly epoch: string;
}

/** An entry of the journal. */
export interface JournalEntry extends JournalPlace {
  readonly event: LedgerEvent;
}

/** The place before the first entry. */
export const JOURNAL_START: JournalPlace = { version: 0, epoch: '0' };

/** The place as the scripts write it. */
export function journalToken(place: JournalPlace): string {
  return `${place.version}-${place.epoch}`;
}

/** Reads the scripts' form of a place. */
export function journalPlace(token: string): JournalPlace {
  const [version, epoch] = token.split('-');
  return { version: Number(version), epoch: epoch ?? '0' };
}

/** A job's facts for policy as the submission writes them; the script adds arrival and sequence and the brace. */
export function openFacts(facts: JobFacts): string {
  const { member, tier, base, model, bodyBytes, route, kind } = facts;
  const short = { m: member, r: tier, p: base, o: model, y: bodyBytes, t: route, k: kind };
  return JSON.stringify(short).slice(0, -1);
}

/**
 * A job from its facts; undefined when they are missing or not readable. The band follows from the base, so
 * that another configuration needs no rewriting.
 */
export function readFacts(id: string, json: string, rules: Rules): WaitingJob | undefined {
  const facts = parsed(json);
  if (facts === undefined) return undefined;
  const { m, r, p, o, a, s, t, k } = facts;
  if (typeof m !== 'string' || typeof r !== 'string' || typeof o !== 'string') return undefined;
  if (!isWhole(p) || !isWhole(a) || !isWhole(s)) return undefined;
  return {
    id: jobId(id),
    member: memberId(m),
    tier: r,
    band: nearestBand(p, rules),
    base: p,
    model: o,
    arrivalMs: a,
    sequence: s,
    ...(typeof t === 'string' && typeof k === 'string' ? { work: { route: t, kind: k } } : {}),
  };
}

/** Reads an entry; undefined when it is none of ours. */
export function readJournalEntry(
  [id, flat]: RawJournalEntry,
  rules: Rules,
): JournalEntry | undefined {
  const fields = new Map<string, string>();
  for (let index = 0; index + 1 < flat.length; index += 2) {
    fields.set(flat[index] ?? '', flat[index + 1] ?? '');
  }
  const atMs = Number(fields.get('t'));
  const subject = fields.get('j') ?? '';
  const job = readFacts(subject, fields.get('f') ?? '', rules) ?? unknownJob(subject, atMs, rules);
  const event = readEvent(fields.get('k'), fields.get('x') ?? '', job, atMs);
  return event && { ...journalPlace(id), event };
}

function readEvent(
  kind: string | undefined,
  extra: string,
  job: WaitingJob,
  atMs: number,
): LedgerEvent | undefined {
  if (!Number.isFinite(atMs)) return undefined;
  const [usedMs = 0, eligibleAtMs = 0] = extra.split(' ').map(Number);
  switch (kind) {
    case 'arrive':
    case 'remove':
      return { kind, atMs, job };
    case 'dispatch':
      return { kind, atMs, job, passedOver: passedOverOf(extra) };
    case 'end':
      return { kind, atMs, job, usedMs };
    case 'back':
      return { kind, atMs, job, usedMs, eligibleAtMs };
    case undefined:
    default:
      return undefined;
  }
}

function passedOverOf(json: string): MemberId[] {
  try {
    const members: unknown = JSON.parse(json);
    return Array.isArray(members) ? members.map((member) => memberId(String(member))) : [];
  } catch {
    return [];
  }
}

/** A job whose facts are gone: nobody's, in the middle. */
function unknownJob(id: string, atMs: number, rules: Rules): WaitingJob {
  return {
    id: jobId(id),
    member: memberId('shared'),
    tier: 'free',
    band: nearestBand(0, rules),
    base: 0,
    model: '',
    arrivalMs: Number.isFinite(atMs) ? atMs : 0,
    sequence: 0,
  };
}

function parsed(json: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
