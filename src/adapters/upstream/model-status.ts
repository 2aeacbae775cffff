import type { ModelStatusRow } from './model-directory.ts';

/**
 * The rows of a `modelStatus` message, given the `data` of one event of `/api/events`: JSON whose `data` is JSON in a
 * string. Undefined for messages of other types and for what cannot be read.
 */
export function parseModelStatus(data: string): ModelStatusRow[] | undefined {
  // Most messages are lines of a log, some of them long; only this type is parsed.
  if (!data.includes('"modelStatus"')) return undefined;
  try {
    const message = JSON.parse(data) as { type?: unknown; data?: unknown };
    if (message.type !== 'modelStatus' || typeof message.data !== 'string') return undefined;
    const rows: unknown = JSON.parse(message.data);
    return Array.isArray(rows) ? rows.filter(isRow) : undefined;
  } catch {
    return undefined;
  }
}

/** The first `modelStatus` in the beginning of an event stream; undefined while none has come whole. */
export function readModelStatus(text: string): ModelStatusRow[] | undefined {
  if (!text.includes('"modelStatus"')) return undefined;
  for (const line of text.split('\n').slice(0, -1)) {
    const rows = line.startsWith('data:') ? parseModelStatus(line.slice(5)) : undefined;
    if (rows !== undefined) return rows;
  }
  return undefined;
}

function isRow(row: unknown): row is ModelStatusRow {
  return typeof row === 'object' && row !== null && 'id' in row && typeof row.id === 'string';
}
