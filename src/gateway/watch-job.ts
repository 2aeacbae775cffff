import type { JobEvent } from '../ports/job-queue.ts';
import type { JobRecord, JobRecords } from '../ports/job-records.ts';

/** What following a job needs. */
export interface WatchDependencies {
  records: Pick<JobRecords, 'read'>;
  reader: {
    listen(jobId: string, listener: (event: JobEvent) => void): void;
    unlisten(jobId: string, listener: (event: JobEvent) => void): void;
  };
}

/** How often a silent job is looked at, in ms: events may be missed. */
const LOOK_MS = 2000;

/** Whether a job has come to its outcome. */
export const hasEnded = ({ state }: JobRecord): boolean =>
  state !== 'waiting' && state !== 'running';

/**
 * Looks at a job at each of its events, and every `lookMs`, until what is on record is enough, the job is gone, or the
 * signal aborts; returns what was seen last.
 */
export async function watchJob(
  jobId: string,
  isEnough: (record: JobRecord) => boolean,
  { records, reader }: WatchDependencies,
  signal: AbortSignal,
  lookMs = LOOK_MS,
): Promise<JobRecord | undefined> {
  let hasNews = false;
  let wake: () => void = () => undefined;
  const onNews = (): void => {
    hasNews = true;
    wake();
  };
  reader.listen(jobId, onNews);
  signal.addEventListener('abort', onNews, { once: true });
  try {
    for (;;) {
      hasNews = false;
      const record = await records.read(jobId);
      if (record === undefined || isEnough(record) || signal.aborted) return record;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (hasNews) resolve();
        else timer = setTimeout(resolve, lookMs);
      });
      clearTimeout(timer);
    }
  } finally {
    reader.unlisten(jobId, onNews);
    signal.removeEventListener('abort', onNews);
  }
}
