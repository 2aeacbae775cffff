import type { RawJournalEntry } from './journal-entry.ts';

/** What a script that fetches replies: see lua/fetch.lua. */
export type SettlementReply = [
  bull: unknown,
  payload: Buffer[] | null,
  now: Buffer,
  status: Buffer,
  entries: [Buffer, Buffer[]][] | null,
];

/** Whether the pick was made too early, and nothing was handed out. */
export const isRefused = (reply: SettlementReply | undefined): reply is SettlementReply =>
  reply !== undefined && reply[3].toString() !== 'ok';

/** Whether jobs stand elsewhere than the journal has them. */
export const isDrift = (reply: SettlementReply): boolean => reply[3].toString() === 'drift';

/** What the journal holds beyond the place that was known; undefined when it cannot be told. */
export const entriesIn = (reply: SettlementReply): RawJournalEntry[] | undefined =>
  reply[4]?.map(([id, fields]): RawJournalEntry => [id.toString(), fields.map(String)]);

/** Redis TIME at the reply, in ms. */
export const timeIn = (reply: SettlementReply): number => Number(reply[2].toString());

/** The request of the job that was handed out, by field. */
export function requestIn(reply: SettlementReply): Map<string, Buffer> | undefined {
  const flat = reply[1];
  if (flat === null) return undefined;
  const map = new Map<string, Buffer>();
  for (let index = 0; index + 1 < flat.length; index += 2) {
    map.set(String(flat[index]), flat[index + 1] ?? Buffer.alloc(0));
  }
  return map;
}

/** BullMQ's own reply. */
export const bullReplyIn = (reply: SettlementReply): unknown => asText(reply[0]);

function asText(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString();
  return Array.isArray(value) ? value.map(asText) : value;
}
