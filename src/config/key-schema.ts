import * as z from 'zod';
import { baseBound } from '../policy/rules.ts';
import { nameSchema } from './rules-schema.ts';

const priority = z.int().min(-baseBound).max(baseBound);

/** Highest priority of a key that may not assert and says nothing of its own, in points. */
const ordinaryCeiling = 100;

/** One entry of `keys`. Berth stores no key, only its SHA-256. */
export const keySchema = z.strictObject({
  name: z.string().min(1).max(64).describe('What logs and the operator call the key.'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'a text of 64 lower-case hex digits')
    .describe("Lower-case hex SHA-256 of the key's UTF-8 bytes."),
  member: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('The member its jobs run for; the name if left out.'),
  tier: nameSchema.optional().describe('The tier of its jobs; `free` if left out.'),
  defaultPriority: priority
    .optional()
    .describe('Points of a request without a priority header; 0 if left out.'),
  maxPriority: priority
    .nullable()
    .optional()
    .describe('Ceiling in points; null: none. Left out: 100, none for a trusted key.'),
  mayAssert: z
    .array(z.enum(['member', 'tier']))
    .max(2)
    .optional()
    .describe('Which of `X-Berth-Member` and `X-Berth-Tier` are believed from it.'),
  admin: z.boolean().optional().describe('Whether it may use the board and admin routes.'),
  caps: z
    .strictObject({
      waitingPerMember: z.int().min(1).optional().describe('As `caps.waitingPerMember`.'),
      bytesPerMember: z.int().min(1).optional().describe('As `caps.bytesPerMember`.'),
    })
    .optional()
    .describe('Caps of its own.'),
});

/** A key with everything that was left out filled in. */
export interface KeyRule {
  readonly name: string;
  /** Lower-case hex; compare in constant time. */
  readonly sha256: string;
  readonly member: string;
  readonly tier: string;
  /** Points, a whole number within ±10000. */
  readonly defaultPriority: number;
  /** Points; null: no ceiling. */
  readonly maxPriority: number | null;
  readonly mayAssert: readonly ('member' | 'tier')[];
  readonly isAdmin: boolean;
  /** Null: the general cap holds. */
  readonly waitingPerMember: number | null;
  readonly bytesPerMember: number | null;
}

/** Fills in what an entry of `keys` leaves out. */
export function keyRule(entry: z.output<typeof keySchema>): KeyRule {
  const mayAssert = entry.mayAssert ?? [];
  const isAdmin = entry.admin ?? false;
  const isTrusted = isAdmin || mayAssert.length > 0;
  return {
    name: entry.name,
    sha256: entry.sha256,
    member: entry.member ?? entry.name,
    tier: entry.tier ?? 'free',
    defaultPriority: entry.defaultPriority ?? 0,
    maxPriority:
      entry.maxPriority === undefined ? (isTrusted ? null : ordinaryCeiling) : entry.maxPriority,
    mayAssert,
    isAdmin,
    waitingPerMember: entry.caps?.waitingPerMember ?? null,
    bytesPerMember: entry.caps?.bytesPerMember ?? null,
  };
}
