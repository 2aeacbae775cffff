import type { DispatchRecord, EndRecord, RecordedJob } from '../../src/ports/dispatch-log.ts';

/** The record of a job's dispatch; by default a swap, and a free, normal job of mort's. */
export function aDispatchRecord(
  id: string,
  facts: Partial<RecordedJob> = {},
  isSwap = true,
): DispatchRecord {
  return {
    kind: 'dispatch',
    atMs: 10_000,
    winner: {
      id,
      member: 'mort',
      tier: 'free',
      band: 'normal',
      base: 0,
      model: 'model',
      arrivalMs: 0,
      score: { band: 0, tier: 0, affinity: 0, aging: 0, effective: 0 },
      ...facts,
    },
    turnMs: 0,
    passedOver: 0,
    losers: {},
    displaced: {},
    waiting: {},
    residentModel: null,
    isSwap,
  };
}

/** The record of a run's end; by default a second without a load. */
export function anEndRecord(id: string, facts: Partial<EndRecord> = {}): EndRecord {
  return { kind: 'end', atMs: 11_000, id, usedMs: 1000, loadMs: 0, ...facts };
}
