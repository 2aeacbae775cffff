import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';

const secret = /^(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key)$/i;

/** The headers as text, credentials masked as llama-swap masks them. */
export function withoutSecrets(
  headers: IncomingHttpHeaders | OutgoingHttpHeaders,
): Record<string, string> {
  const shown = Object.entries(headers).map(([name, value]) => [
    name,
    secret.test(name) ? '[REDACTED]' : String(value),
  ]);
  return Object.fromEntries(shown) as Record<string, string>;
}
