import type { CrashFault } from './crash-fault.ts';
import type { Generation } from './crash-generations.ts';
import type { CrashEvent } from './crash-history.ts';

/** A stretch of time, in ms. */
interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Something that should not be, unless a crash of its own happened within its span. */
interface Debt extends Span {
  readonly text: string;
}

/** The GPU runs one job at a time, so a crash may cut one generation: each repeat and each failure needs another crash. */
export function unexcused(
  events: readonly CrashEvent[],
  generations: readonly Generation[],
): CrashFault[] {
  const debts = [...repeatsIn(generations), ...failuresIn(events, generations)];
  const crashes = crashesIn(events);
  const paidBy = new Map<Span, Debt>();
  const pay = (debt: Debt, tried: Set<Span>): boolean => {
    for (const crash of crashes) {
      if (tried.has(crash) || crash.fromMs > debt.toMs || crash.toMs < debt.fromMs) continue;
      tried.add(crash);
      const other = paidBy.get(crash);
      if (other !== undefined && !pay(other, tried)) continue;
      paidBy.set(crash, debt);
      return true;
    }
    return false;
  };
  return debts
    .filter((debt) => !pay(debt, new Set()))
    .map(({ text }) => ({ kind: 'without-excuse', text: `${text} without a crash to excuse it` }));
}

/** Generations of a job after its first. */
export function repeatsIn(generations: readonly Generation[]): Debt[] {
  const last = new Map<string, Generation>();
  return generations.flatMap((next) => {
    const before = last.get(next.jobId);
    last.set(next.jobId, next);
    if (before === undefined) return [];
    return [{ text: `${next.jobId} ran again`, fromMs: before.startMs, toMs: next.startMs }];
  });
}

/** Jobs that ended otherwise than completed; of each, the time from its last generation until that was told. */
function failuresIn(events: readonly CrashEvent[], generations: readonly Generation[]): Debt[] {
  const told = new Map<string, Extract<CrashEvent, { kind: 'read' }>>();
  for (const event of events)
    if (
      event.kind === 'read' &&
      ['failed', 'cancelled', 'expired', 'evicted'].includes(event.state)
    )
      if (!told.has(event.jobId)) told.set(event.jobId, event);
  return [...told.values()].map(({ jobId, state, code, atMs }) => ({
    text: `${jobId} ${state} (${code ?? 'no code'})`,
    fromMs: generations.findLast((one) => one.jobId === jobId)?.startMs ?? Infinity,
    toMs: atMs,
  }));
}

/** From each kill of worker or Redis until it was started again. */
function crashesIn(events: readonly CrashEvent[]): Span[] {
  return events.flatMap((event, index) => {
    if (event.kind !== 'kill' || (event.victim !== 'gpu' && event.victim !== 'redis')) return [];
    const back = events
      .slice(index)
      .find((later) => later.kind === 'start' && later.victim === event.victim);
    return [{ fromMs: event.atMs, toMs: back?.atMs ?? Infinity }];
  });
}
