import type { CrashEvent } from './crash-history.ts';

/** One request at the model server. */
export interface Generation {
  readonly jobId: string;
  readonly key: string;
  readonly startMs: number;
  /** Infinity when no end was seen. */
  readonly endMs: number;
  /** Of its bytes; null when it was cut. */
  readonly sha256: string | null;
}

/** The generations of a history, in the order in which they began. */
export function generationsOf(events: readonly CrashEvent[]): Generation[] {
  const ends = new Map<number, Extract<CrashEvent, { kind: 'generation-end' }>>();
  for (const event of events)
    if (event.kind === 'generation-end') ends.set(event.generation, event);
  return events
    .filter((event) => event.kind === 'generation-start')
    .map(({ generation, jobId, key, atMs }) => {
      const end = ends.get(generation);
      return {
        jobId,
        key,
        startMs: atMs,
        endMs: end?.atMs ?? Infinity,
        sha256: end?.sha256 ?? null,
      };
    });
}
