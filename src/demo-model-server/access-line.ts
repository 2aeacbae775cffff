import type { RequestRecord } from './request-record.ts';

/** Requests that come again and again, and are not worth a line. */
const quiet = /^\/(?:logs(?:\/|$)|metrics$|wol-health$|api\/performance$)/;

/** The log line of a request that has ended; undefined for one that is kept quiet about. Queries stay out of it. */
export function accessLine(
  record: RequestRecord,
  remoteIp: string,
  bytesSent: number,
): string | undefined {
  const path = record.target.split('?', 1)[0] ?? '';
  if (quiet.test(path)) return undefined;
  const ms = ((record.endedAtMs ?? record.startedAtMs) - record.startedAtMs).toFixed(3);
  const agent = record.headers['user-agent'] ?? '';
  const request = `"${record.method} ${path} HTTP/1.1"`;
  return `[INFO] Request ${remoteIp} ${request} ${record.status ?? 0} ${bytesSent} "${agent}" ${ms}ms`;
}
