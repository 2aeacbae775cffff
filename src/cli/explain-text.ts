import { durationText } from '../gateway/duration-text.ts';
import type { Explanation } from '../gateway/explanation.ts';
import { textTable } from './text-table.ts';

/** Lines of each table; beyond that a person asks for `--json`. */
const SHOWN = 20;
const ONE_DAY_SECONDS = 86_400;

/** An explanation for a terminal: its sentences, the terms, who is ahead, and what the wait was made of. */
export function explainText(explanation: Explanation): string {
  const { summary, score, ahead, ahead_total: total, timeline, as_of: now } = explanation;
  const parts = [`${summary}\n`];
  if (score !== null) {
    const { band, tier, affinity, aging, effective } = score;
    const terms = `${band} base + ${tier} tier + ${affinity} affinity + ${aging.toFixed(1)} aging`;
    parts.push(`${terms} = ${effective.toFixed(1)} points\n`);
  }
  if (ahead.length > 0) {
    const rows = ahead
      .slice(0, SHOWN)
      .map(({ job, because, seconds }) => [job, words(because), durationText(seconds)]);
    const more = total - rows.length;
    parts.push(textTable(['AHEAD', 'BECAUSE', 'TAKES'], rows) + andMore(more));
  }
  if (timeline.length > 0) {
    const pieces = timeline.slice(-SHOWN);
    const rows = pieces.map(({ from, seconds, because, runs }) => [
      timeText(from, now),
      durationText(seconds),
      words(because),
      runs > 0 ? String(runs) : '',
    ]);
    const earlier = timeline.length - rows.length;
    parts.push(textTable(['FROM', 'WAITED', 'BECAUSE', 'RUNS'], rows) + andMore(earlier));
  }
  return parts.join('\n');
}

const words = (because: string): string => because.replaceAll('_', ' ');
const andMore = (count: number): string => (count > 0 ? `and ${count} more\n` : '');

/** The time of day in UTC, with the date when that was not within a day of `now`; both in unix seconds. */
function timeText(at: number, now: number): string {
  const iso = new Date(at * 1000).toISOString();
  return now - at < ONE_DAY_SECONDS ? iso.slice(11, 19) : iso.slice(0, 19).replace('T', ' ');
}
