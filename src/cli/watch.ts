import type { BerthClient } from './berth-client.ts';
import { EXIT } from './command-error.ts';
import { follow } from './follow.ts';
import { followedJob, hasEnded, jobFraction, jobLine } from './job-news.ts';
import type { JobNews } from './job-news.ts';
import { printable } from './printable.ts';
import { ProgressLine } from './progress-line.ts';
import type { ProgressState } from './progress-line.ts';
import type { Terminal } from './terminal.ts';

/** Between two lines that differ in their bytes or estimate alone, in ms. */
const QUIET_MS = 15_000;

/**
 * Follows a job to its end: a bar where the stream is a terminal, else a line at each change. Resolves to the last that
 * was heard of it.
 */
export async function watchJob(
  client: BerthClient,
  terminal: Terminal,
  id: string,
  stream: NodeJS.WriteStream,
): Promise<JobNews | undefined> {
  terminal.ifInterrupted(`the job stays; berth watch ${id} goes on, berth cancel ${id} ends it`);
  let news: JobNews | undefined;
  const line = stream.isTTY
    ? new ProgressLine(stream, () =>
        news === undefined ? undefined : shown(news, jobFraction(news, Date.now())),
      )
    : undefined;
  let [told, toldAt] = ['', 0];
  try {
    for await (const next of follow(client, terminal, followedJob(id))) {
      news = next;
      const key = `${next.state} ${next.position ?? ''}`;
      const isNew = key !== told || performance.now() - toldAt > QUIET_MS;
      if (line !== undefined) line.draw();
      else if (isNew) {
        stream.write(`${printable(jobLine(next))}\n`);
        [told, toldAt] = [key, performance.now()];
      }
    }
  } finally {
    line?.stop();
  }
  if (line !== undefined && news !== undefined) stream.write(`${printable(jobLine(news))}\n`);
  return news;
}

/** `berth watch`: 0 when the job has completed. */
export async function watch(client: BerthClient, terminal: Terminal, id: string): Promise<number> {
  const news = await watchJob(client, terminal, id, terminal.out);
  return exitOf(news);
}

/** What a command that followed a job ends with. */
export const exitOf = (news: JobNews | undefined): number =>
  news?.state === 'completed' ? 0 : EXIT.endedOtherwise;

function shown(news: JobNews, fraction: number): ProgressState {
  const [before = '', ...rest] = hasEnded(news) ? [news.state] : jobLine(news).split(', ');
  return { fraction, before, after: rest.join(', ') };
}
