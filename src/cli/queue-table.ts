import type { QueueView, ShownJob } from '../gateway/queue-view.ts';
import { durationText, etaText } from '../gateway/duration-text.ts';
import { textTable } from './text-table.ts';

/** Waiting jobs that the table shows. */
const SHOWN = 50;
const HEAD = ['', 'JOB', 'MEMBER', 'MODEL', 'BAND', 'TIER', 'POINTS', 'WAITED', 'DONE IN'];

/** The running job, then those that wait in the order of the plan; others' jobs show a dash for what is not to be seen. */
export function queueTable({ running, waiting, waiting_total: total }: QueueView): string {
  if (running === null && total === 0) return 'nothing runs and nothing waits\n';
  const whose = ({ id, member, model, band, tier }: ShownJob): string[] => [
    ...[id ?? '-', member ?? '-', model ?? '-'],
    ...[band, tier],
  ];
  const rows = [
    ...(running === null
      ? []
      : [['runs', ...whose(running), '', '', etaText(running.eta_seconds)]]),
    ...waiting
      .slice(0, SHOWN)
      .map((job) => [
        `${job.position}${job.in_backoff ? ' (again)' : ''}`,
        ...whose(job),
        job.score.effective.toFixed(1),
        durationText(job.waited_seconds),
        etaText(job.eta_seconds),
      ]),
  ];
  const more = total - Math.min(SHOWN, waiting.length);
  return `${textTable(HEAD, rows)}${more > 0 ? `and ${more} more\n` : ''}`;
}
