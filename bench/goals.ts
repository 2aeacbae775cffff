import type { Figures, Fsync } from './pass.ts';

/** One line of a table: how a figure follows from a pass, and what it should be. */
export interface Row<Column extends string = Fsync> {
  title: string;
  unit: string;
  /** The figure of one pass. */
  of: (figures: Figures) => number;
  /** The wanted bound of the median, by column; none: for comparison only. */
  goal?: Partial<Record<Column, number>>;
  /** Whether the goal is a least value; default: a most. */
  isLeast?: boolean;
}

/** A figure as it was measured. */
export const named =
  (name: string) =>
  (figures: Figures): number =>
    figures[name] ?? NaN;
/** One figure against another. */
export const ratio =
  (one: string, other: string) =>
  (figures: Figures): number =>
    named(one)(figures) / named(other)(figures);
const both = (bound: number): Record<Fsync, number> => ({ everysec: bound, always: bound });

/** Most that the whole policy may make of bare BullMQ's gap, as a factor. */
export const AGAINST_BARE = 1.15;
/** Most that Berth may add to a request that needs no GPU, as a factor of what nginx adds. */
const AGAINST_NGINX = 2;
/** Most that the gap may grow from an empty queue to the full backlog, as a factor, to be called flat. */
const FLAT = 1.15;
/** Most that a 100 MB answer may add to a process to be called flat, in MB: it buffers pieces, not the answer. */
const FLAT_MB = 40;

/** Everything that is reported, in order. */
export const ROWS: readonly Row[] = [
  { title: 'GPU idle gap p50, 0 further waiting, Berth', unit: 'ms', of: named('gap-0.berth.p50') },
  { title: 'GPU idle gap p99, 0 further waiting, Berth', unit: 'ms', of: named('gap-0.berth.p99') },
  {
    title: 'GPU idle gap p50, 0 further waiting, bare BullMQ',
    unit: 'ms',
    of: named('gap-0.bare.p50'),
  },
  {
    title: 'GPU idle gap p99, 0 further waiting, bare BullMQ',
    unit: 'ms',
    of: named('gap-0.bare.p99'),
  },
  {
    title: 'gap p50 against bare BullMQ, 0 further waiting',
    unit: 'x',
    of: ratio('gap-0.berth.p50', 'gap-0.bare.p50'),
    goal: both(AGAINST_BARE),
  },
  {
    title: 'GPU idle gap p50, 10,000 waiting, Berth',
    unit: 'ms',
    of: named('gap-backlog.berth.p50'),
  },
  {
    title: 'GPU idle gap p99, 10,000 waiting, Berth',
    unit: 'ms',
    of: named('gap-backlog.berth.p99'),
  },
  {
    title: 'GPU idle gap p50, 10,000 waiting, bare BullMQ',
    unit: 'ms',
    of: named('gap-backlog.bare.p50'),
  },
  {
    title: 'GPU idle gap p99, 10,000 waiting, bare BullMQ',
    unit: 'ms',
    of: named('gap-backlog.bare.p99'),
  },
  {
    title: 'gap p50 against bare BullMQ, 10,000 waiting',
    unit: 'x',
    of: ratio('gap-backlog.berth.p50', 'gap-backlog.bare.p50'),
    goal: both(AGAINST_BARE),
  },
  {
    title: 'gap p50, 10,000 waiting against 0 (flat)',
    unit: 'x',
    of: ratio('gap-backlog.berth.p50', 'gap-0.berth.p50'),
    goal: both(FLAT),
  },
  {
    title: 'GPU idle gap p50, connected clients over HTTP',
    unit: 'ms',
    of: named('gap-clients.berth.p50'),
  },
  {
    title: 'GPU idle gap p99, connected clients over HTTP',
    unit: 'ms',
    of: named('gap-clients.berth.p99'),
  },
  { title: 'time to first byte p50, direct', unit: 'ms', of: named('first.direct.p50') },
  { title: 'time to first byte p50, Berth, idle queue', unit: 'ms', of: named('first.berth.p50') },
  {
    title: 'added time to first byte p50',
    unit: 'ms',
    of: named('first.added'),
    goal: { everysec: 3, always: 6 },
  },
  { title: 'streamed chunk p50, direct', unit: 'ms', of: named('chunk.direct.p50') },
  { title: 'streamed chunk p50, Berth', unit: 'ms', of: named('chunk.berth.p50') },
  { title: 'streamed chunk p99, Berth', unit: 'ms', of: named('chunk.berth.p99') },
  {
    title: 'added latency per streamed chunk p50',
    unit: 'ms',
    of: named('chunk.added'),
    goal: both(1),
  },
  {
    title: 'streamed chunk p50, nginx as a plain proxy',
    unit: 'ms',
    of: named('chunk.nginx.p50'),
  },
  { title: 'passed request p50, direct', unit: 'ms', of: named('passed.direct.p50') },
  { title: 'passed request p50, nginx', unit: 'ms', of: named('passed.nginx.p50') },
  { title: 'passed request p50, Berth', unit: 'ms', of: named('passed.berth.p50') },
  { title: 'passed request p99, nginx', unit: 'ms', of: named('passed.nginx.p99') },
  { title: 'passed request p99, Berth', unit: 'ms', of: named('passed.berth.p99') },
  {
    title: 'time added to a passed request p50, Berth against nginx',
    unit: 'x',
    of: ratio('passed.berth.added', 'passed.nginx.added'),
    goal: both(AGAINST_NGINX),
  },
  { title: '100 MB answer passed, nginx', unit: 'MB/s', of: named('passed-large.nginx') },
  { title: '100 MB answer passed, Berth', unit: 'MB/s', of: named('passed-large.berth') },
  { title: '100 MB answer, direct', unit: 'MB/s', of: named('large.direct') },
  {
    title: '100 MB answer, Berth',
    unit: 'MB/s',
    of: named('large.berth'),
    goal: both(80),
    isLeast: true,
  },
  {
    title: '100 MB answer, growth of the GPU worker',
    unit: 'MB',
    of: named('large.worker-growth'),
    goal: both(FLAT_MB),
  },
  {
    title: '100 MB answer, growth of the ingress',
    unit: 'MB',
    of: named('large.ingress-growth'),
    goal: both(FLAT_MB),
  },
  { title: 'accepted jobs, 64 in flight, Berth', unit: '1/s', of: named('accepted.berth') },
  { title: 'accepted jobs, 64 in flight, bare queue.add', unit: '1/s', of: named('accepted.bare') },
];
