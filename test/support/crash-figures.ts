import { repeatsIn } from './crash-excuses.ts';
import { generationsOf } from './crash-generations.ts';
import type { CrashEvent } from './crash-history.ts';

/** What happened in a crash test, in one line. */
export function crashFigures(events: readonly CrashEvent[]): string {
  const count = (kind: CrashEvent['kind']): number =>
    events.filter((event) => event.kind === kind).length;
  const distinct = (values: string[]): number => new Set(values).size;
  const accepted = events.filter((event) => event.kind === 'accepted');
  const failed = events.flatMap((event) =>
    event.kind === 'read' && event.state === 'failed' ? [event.jobId] : [],
  );
  const kills = events.filter((event) => event.kind === 'kill').map(({ victim }) => victim);
  const victims = [...new Set(kills)].map(
    (victim) => `${victim} ${kills.filter((one) => one === victim).length}`,
  );
  const generations = generationsOf(events);
  return [
    `${distinct(accepted.map(({ jobId }) => jobId))} jobs of ${count('submit')} submissions`,
    `${count('cut')} cut, ${count('refused')} refused`,
    `${kills.length} kills (${victims.join(', ')})`,
    `${generations.length} generations, ${repeatsIn(generations).length} of them repeats`,
    `${distinct(failed)} failed after their answer had begun`,
  ].join('; ');
}
