import { extension } from 'mime-types';

/** Suffixes that people expect where the registry lists others, or none. */
const USUAL: Readonly<Record<string, string>> = {
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/x-wav': 'wav',
  'text/event-stream': 'sse',
  'application/x-ndjson': 'ndjson',
};

/** The name of a shot's file: its number, as wide as the last one's and at least four digits, and what its type calls for. */
export function shotName(shot: number, total: number, contentType: string): string {
  const digits = Math.max(4, String(total).length);
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const suffix = USUAL[type] ?? (extension(type) || 'bin');
  return `${String(shot).padStart(digits, '0')}.${suffix}`;
}
