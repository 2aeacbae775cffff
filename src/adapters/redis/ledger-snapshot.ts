import { z } from 'zod';
import type { LedgerState } from '../../policy/ledger.ts';
import type { Rules } from '../../policy/rules.ts';
import type { JournalPlace } from './journal-entry.ts';

/** The books at one place of the journal. The waiting jobs are not in it: they are BullMQ's. */
export interface LedgerSnapshot extends JournalPlace {
  readonly books: Omit<LedgerState, 'jobs'>;
}

const whole = z.number().int();
const laneBooks = z.strictObject({ startTagMs: z.number(), passedMs: z.number() });
const job = z.object({
  id: z.string(),
  member: z.string(),
  tier: z.string(),
  band: z.string(),
  base: whole,
  model: z.string(),
  arrivalMs: whole,
  sequence: whole,
  work: z.strictObject({ route: z.string(), kind: z.string() }).optional(),
  eligibleAtMs: whole.optional(),
});
const schema = z.strictObject({
  format: z.literal(1),
  version: whole.nonnegative(),
  epoch: z.string(),
  books: z.strictObject({
    nowMs: z.number(),
    bands: z.record(
      z.string(),
      z.strictObject({
        books: z.strictObject({
          clockMs: z.number(),
          lastEndMs: z.number(),
          virtualMs: z.number(),
        }),
        lanes: z.record(z.string(), laneBooks),
        finishTagMs: z.record(z.string(), z.number()),
        leftMs: z.record(z.string(), z.number()),
        prompt: z.array(z.string()),
      }),
    ),
    run: z
      .strictObject({
        job,
        startedMs: z.number(),
        lane: laneBooks,
        clockMs: z.number(),
        passedOver: z.array(z.string()),
      })
      .nullable(),
    expected: z
      .strictObject({ job, costMs: z.number(), endedMs: z.number(), lane: laneBooks })
      .nullable(),
  }),
});

/** The snapshot as it is kept. */
export function writeSnapshot(place: JournalPlace, state: LedgerState): string {
  const { nowMs, bands, run, expected } = state;
  const { version, epoch } = place;
  return JSON.stringify({ format: 1, version, epoch, books: { nowMs, bands, run, expected } });
}

/** Reads a snapshot; undefined when it is damaged, of another format, or has other bands than the rules. */
export function readSnapshot(json: string, rules: Rules): LedgerSnapshot | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const read = schema.safeParse(value);
  if (!read.success) return undefined;
  const { version, epoch, books } = read.data;
  const names = Object.keys(books.bands).sort().join('\n');
  if (names !== Object.keys(rules.bands).sort().join('\n')) return undefined;
  // Ids and members are plain strings in JSON; the rest was just checked.
  return { version, epoch, books: books as unknown as LedgerSnapshot['books'] };
}
