import { AGAINST_BARE, named, ratio } from './goals.ts';
import type { Row } from './goals.ts';

/** How many jobs wait, as the head of a column. */
export type BacklogColumn = '100' | '10,000' | '100,000';

const everywhere = (bound: number): Record<BacklogColumn, number> => ({
  '100': bound,
  '10,000': bound,
  '100,000': bound,
});
/** Most that the gap may grow from 100 to 100,000 waiting jobs, as a factor. */
const GROWTH = 1.3;
/** Most memory of a waiting job beyond its body, in KB (1000 bytes). */
const JOB_KB = 3;
/** Most that `/berth/queue` may take, in ms. */
const VIEW_MS = 300;
/** Seconds from one scorer pass to the next, as shipped. */
const INTERVAL_SECONDS = 15;

/** What is reported of the order, for each number of members. */
export const BACKLOG_ROWS: readonly Row<BacklogColumn>[] = [
  { title: 'GPU idle gap p50, Berth', unit: 'ms', of: named('gap.berth.p50') },
  { title: 'GPU idle gap p99, Berth', unit: 'ms', of: named('gap.berth.p99') },
  { title: 'GPU idle gap p50, bare BullMQ', unit: 'ms', of: named('gap.bare.p50') },
  { title: 'GPU idle gap p99, bare BullMQ', unit: 'ms', of: named('gap.bare.p99') },
  {
    title: 'gap p50 against bare BullMQ',
    unit: 'x',
    of: ratio('gap.berth.p50', 'gap.bare.p50'),
    goal: everywhere(AGAINST_BARE),
  },
  {
    title: 'gap p50 against that at 100 waiting, Berth',
    unit: 'x',
    of: named('gap.growth.berth'),
    goal: { '100,000': GROWTH },
  },
  {
    title: 'the same, bare BullMQ',
    unit: 'x',
    of: named('gap.growth.bare'),
  },
  { title: 'next pick', unit: 'ms', of: named('policy.decide') },
  { title: 'next pick as if the run had ended', unit: 'ms', of: named('policy.as-if-ended') },
  { title: 'who was displaced, by term', unit: 'ms', of: named('policy.displaced') },
  { title: 'books as text', unit: 'ms', of: named('policy.snapshot') },
  { title: 'plan of all that wait', unit: 'ms', of: named('policy.plan') },
  { title: 'its view as text', unit: 'ms', of: named('policy.view') },
  { title: 'that text made fit for one member', unit: 'ms', of: named('policy.view-masked') },
  { title: 'view, for each job', unit: 'KB', of: named('policy.view-kb') },
  {
    title: 'Redis memory of a waiting job beyond its body, Berth',
    unit: 'KB',
    of: named('job-kb.berth'),
    goal: { '10,000': JOB_KB, '100,000': JOB_KB },
  },
  { title: 'the same, bare BullMQ', unit: 'KB', of: named('job-kb.bare') },
  { title: 'jobs accepted while it is filled, Berth', unit: '1/s', of: named('fill.berth') },
  { title: 'scorer pass', unit: 's', of: named('scorer.pass') },
  { title: 'resident memory, GPU worker', unit: 'MB', of: named('rss.worker') },
  { title: 'resident memory, scorer', unit: 'MB', of: named('rss.scorer') },
  {
    title: '/berth/queue p50',
    unit: 'ms',
    of: named('view.p50'),
    goal: { '10,000': VIEW_MS },
  },
  { title: '/berth/queue p99', unit: 'ms', of: named('view.p99') },
  { title: '/berth/queue, size', unit: 'KB', of: named('view.kb') },
  { title: 'foreign swap to its notice p50', unit: 'ms', of: named('swap.told') },
  {
    title: 'next dispatches that wanted the model swapped in',
    unit: 'share',
    of: named('swap.followed'),
    goal: { '10,000': 1 },
    isLeast: true,
  },
  {
    title: "swap to BullMQ's numbers, in intervals and passes of the scorer",
    unit: 'x',
    of: (figures) =>
      (figures['swap.numbers'] ?? NaN) / (INTERVAL_SECONDS + (figures['scorer.pass'] ?? NaN)),
    goal: { '10,000': 1 },
  },
];
