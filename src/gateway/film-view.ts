import type { FilmRecord, ShotRecord } from '../ports/film-store.ts';
import { jobPath } from './job-object.ts';
import type { EtaSeconds } from './queue-view.ts';

/** A shot as the film's producer sees it. */
export interface ShotObject {
  /** Counted from 1. */
  readonly shot: number;
  /** `pending`: it is no job yet. */
  readonly state: string;
  readonly job_id: string | null;
  readonly tries: number;
  readonly urls: { readonly self: string; readonly result: string } | null;
}

/** A film without its shots. Times are unix seconds. */
export interface FilmSummary {
  readonly id: string;
  readonly object: 'film';
  readonly state: FilmRecord['state'] | 'waiting';
  readonly member: string;
  readonly done: number;
  readonly total: number;
  /** The shot it stands at; null when it is over. */
  readonly shot: number | null;
  readonly job_id: string | null;
  /** Why it stands still; null while it does not. */
  readonly reason: string | null;
  readonly created_at: number;
  /** Until its last shot is done; null while that cannot be told. */
  readonly eta_seconds: EtaSeconds | null;
  readonly urls: { readonly self: string; readonly events: string };
}

/** A film with all its shots. */
export interface FilmObject extends FilmSummary {
  readonly shots: readonly ShotObject[];
}

/** Path of a film. */
export const filmPath = (id: string): string => `/berth/films/${id}`;

/** A film in short; `current`: how long its current shot takes yet, as the plan has it. */
export function filmSummary(
  film: FilmRecord,
  current: EtaSeconds | undefined,
  nowMs: number,
): FilmSummary {
  const isOver = film.state === 'completed' || film.state === 'cancelled';
  const isFresh = film.state === 'running' && film.done === 0 && !film.isActive;
  const self = filmPath(film.id);
  return {
    id: film.id,
    object: 'film',
    state: isFresh ? 'waiting' : film.state,
    member: film.member,
    done: film.done,
    total: film.total,
    shot: isOver ? null : film.done + 1,
    job_id: film.jobId,
    reason: film.reason === '' ? null : film.reason,
    created_at: film.createdMs / 1000,
    eta_seconds: etaOf(film, current, nowMs),
    urls: { self, events: `${self}/events` },
  };
}

/** Each shot of a film. */
export function shotObjects(film: FilmRecord, shots: readonly ShotRecord[]): ShotObject[] {
  return shots.map(({ jobId, outcome, tries }, index) => {
    const isCurrent = index === film.done && film.jobId !== null;
    const standing = film.isActive ? 'running' : film.state === 'paused' ? 'paused' : 'waiting';
    const id = outcome === 'skipped' && jobId === null ? null : jobId;
    return {
      shot: index + 1,
      state: outcome ?? (isCurrent ? standing : 'pending'),
      job_id: id,
      tries,
      urls: id === null ? null : { self: jobPath(id), result: `${jobPath(id)}/result` },
    };
  });
}

/**
 * The current shot as the plan has it, and for each one after it the mean GPU time of those that are done; for the
 * upper end the mean time from one end to the next so far, everybody else's work included.
 */
function etaOf(
  film: FilmRecord,
  current: EtaSeconds | undefined,
  nowMs: number,
): EtaSeconds | null {
  if (film.state === 'completed') return { p50: 0, p90: 0 };
  if (film.state !== 'running') return null;
  const after = film.total - film.done - 1;
  const mean = film.runs > 0 ? film.gpuMs / film.runs / 1000 : current?.p50;
  if (mean === undefined) return null;
  const pace = film.runs > 0 ? (nowMs - film.createdMs) / film.runs / 1000 : (current?.p90 ?? mean);
  const now = current ?? { p50: mean, p90: Math.max(mean, pace) };
  return { p50: round(now.p50 + after * mean), p90: round(now.p90 + after * Math.max(mean, pace)) };
}

const round = (seconds: number): number => Math.round(seconds * 10) / 10;
