import type { EventSourceMessage } from 'eventsource-parser';
import type { JobObject } from '../gateway/job-object.ts';
import type { EtaSeconds } from '../gateway/queue-view.ts';
import { durationText, etaText } from '../gateway/duration-text.ts';
import type { Followed } from './follow.ts';

/** A job as its follower knows it. */
export interface JobNews {
  readonly state: JobObject['state'];
  /** 1: next; null while it is not known, or the job does not wait. */
  readonly position: number | null;
  /** As of `atMs`. */
  readonly eta: EtaSeconds | null;
  readonly bytes: number;
  /** When this was so, in ms since 1970 by this machine's clock. */
  readonly atMs: number;
  /** What was last heard of the whole job. */
  readonly job: JobObject | undefined;
}

/** Whether the job has come to its outcome. */
export const hasEnded = ({ state }: Pick<JobNews, 'state'>): boolean =>
  state !== 'waiting' && state !== 'running';

/** A job's events, put together. */
export function followedJob(id: string, nowMs: () => number = Date.now): Followed<JobNews> {
  const self = `/berth/jobs/${encodeURIComponent(id)}`;
  let news: JobNews | undefined;
  const fromJob = (job: JobObject): JobNews => ({
    state: job.state,
    position: job.position,
    eta: job.eta_seconds,
    bytes: news?.state === job.state ? news.bytes : 0,
    atMs: nowMs(),
    job,
  });
  const fromEvent = ({ event = '', data }: EventSourceMessage): JobNews | undefined => {
    const said = JSON.parse(data) as Partial<JobNews> & { eta_seconds?: EtaSeconds | null };
    const { state, job, position, bytes, eta_seconds: eta = null } = said;
    if (event === 'state' && job !== undefined) return fromJob(job);
    // A state that is over already.
    if (event === 'state' && state !== undefined)
      return { state, position: null, eta: null, bytes: 0, atMs: nowMs(), job: news?.job };
    if (news === undefined) return undefined;
    if (event === 'position')
      return { ...news, state: 'waiting', position: position ?? null, eta, atMs: nowMs() };
    if (event === 'progress') return { ...news, bytes: bytes ?? 0, eta, atMs: nowMs() };
    return undefined;
  };
  return {
    events: `${self}/events`,
    self,
    fromEvent: (event) => {
      const next = fromEvent(event);
      news = next ?? news;
      return next;
    },
    fromObject: (json) => (news = fromJob(json as JobObject)),
    isOver: hasEnded,
  };
}

/** One line on where a job stands. */
export function jobLine(news: JobNews): string {
  const { state, position, eta, bytes, job } = news;
  if (hasEnded(news)) return endLine(state, job);
  const parts = [
    state,
    ...(position === null ? [] : [`position ${position}`]),
    ...(bytes > 0 ? [`${sizeText(bytes)} so far`] : []),
    ...(eta === null ? [] : [`done in ${etaText(eta)}`]),
  ];
  return parts.join(', ');
}

/** How much of a run is over by its estimate, from 0 to 0.99; 0 while it waits, 1 when it has completed. */
export function jobFraction(news: JobNews, nowMs: number): number {
  if (news.state === 'completed') return 1;
  const startedAt = news.job?.started_at ?? null;
  if (news.state !== 'running' || news.eta === null || startedAt === null) return 0;
  const ran = Math.max(0, nowMs / 1000 - startedAt);
  const left = Math.max(0, news.eta.p50 - (nowMs - news.atMs) / 1000);
  return ran + left === 0 ? 0 : Math.min(0.99, ran / (ran + left));
}

function endLine(state: string, job: JobObject | undefined): string {
  if (job === undefined) return state;
  const { metrics, error } = job;
  const times = [
    ...(metrics.queue_seconds === null
      ? []
      : [`${durationText(metrics.queue_seconds)} in the queue`]),
    ...(metrics.gpu_seconds === null ? [] : [`${durationText(metrics.gpu_seconds)} on the GPU`]),
  ].join(', ');
  const why = error === null ? '' : `: ${error.message} (${error.code})`;
  return `${state}${why}${times === '' ? '' : `; ${times}`}`;
}

/** Bytes as a person reads them. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const steps = ['kB', 'MB', 'GB', 'TB'];
  let [size, at] = [bytes / 1000, 0];
  while (size >= 999.5 && at < steps.length - 1) [size, at] = [size / 1000, at + 1];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${steps[at] ?? ''}`;
}
