import type { JobState } from '../policy/outcome.ts';
import { durationText, etaText } from './duration-text.ts';
import type { JobAhead } from './jobs-ahead.ts';
import type { EtaSeconds } from './queue-view.ts';
import type { ReasonToWait } from './wait-timeline.ts';
import type { ReasonAhead } from './why-ahead.ts';

const WAITED: Readonly<Record<ReasonToWait, string>> = {
  running: 'behind the job that ran when it came',
  higher_band: 'behind jobs of a higher band',
  aged_band: 'behind jobs of a lower band that had waited long enough',
  fair_turn: "behind other members' turns",
  base: 'behind jobs of a higher priority in its band',
  tier: 'behind jobs of a higher tier',
  affinity: 'behind jobs of the model that was loaded',
  earlier: "behind its member's own earlier jobs",
  swap: 'while models were loaded for jobs ahead',
  paused: 'while its film was paused',
  ended: 'after it had ended, until it was tried again',
  recovery: 'for an attempt of its own that was repeated, or because nothing ran',
  dispatch: 'to be handed to the model server',
  unrecorded: 'before what is on record',
};

const AHEAD: Readonly<Record<ReasonAhead, string>> = {
  running: 'runs',
  higher_band: 'of a higher band',
  aged_band: 'of a lower band that has waited long enough',
  fair_turn: "by other members' turns",
  base: 'of a higher priority in its band',
  tier: 'of a higher tier',
  affinity: 'of the loaded model',
  earlier: 'earlier',
};

/** What a summary is made of. */
export interface Explained {
  readonly state: JobState;
  readonly position: number | null;
  readonly eta: EtaSeconds | null;
  readonly ahead: readonly JobAhead[];
  readonly ahead_total: number;
  readonly wait_seconds: number;
  readonly totals: Readonly<Partial<Record<ReasonToWait, number>>>;
}

/** Parts of a wait below this many seconds are not worth a word beside longer ones. */
const WORTH_SECONDS = 0.5;

/** An explanation as a person reads it: how long and behind what it waited, and who is ahead. */
export function explanationText(explained: Explained): string {
  const { state, position, eta, ahead_total: total, wait_seconds: waited } = explained;
  const parts = partsOf(explained.totals);
  const why = parts.length > 0 ? `: ${parts.join(', ')}` : '';
  const isWaiting = state === 'waiting';
  const past = `It ${isWaiting ? 'has waited' : 'waited'} ${durationText(waited)}${why}.`;
  if (position === null) return past;
  const counts = countsOf(explained);
  const who = total === 0 ? 'nobody is ahead' : `${total} ahead: ${counts.join(', ')}`;
  const done = eta === null ? '' : ` Done in ${etaText(eta)} if no better job comes.`;
  return `${past} It is number ${position}, ${who}.${done}`;
}

function partsOf(totals: Explained['totals']): string[] {
  const all = Object.entries(totals) as [ReasonToWait, number][];
  const worth = all.filter(([, seconds]) => seconds >= WORTH_SECONDS);
  const longestFirst = worth.toSorted(([, one], [, other]) => other - one);
  return longestFirst.map(([because, seconds]) => `${durationText(seconds)} ${WAITED[because]}`);
}

function countsOf({ ahead, ahead_total: total }: Explained): string[] {
  const counts = new Map<ReasonAhead, number>();
  for (const { because } of ahead) counts.set(because, (counts.get(because) ?? 0) + 1);
  const unlisted = total - ahead.length;
  return [
    ...[...counts].map(([because, count]) => `${count} ${AHEAD[because]}`),
    ...(unlisted > 0 ? [`${unlisted} more`] : []),
  ];
}
