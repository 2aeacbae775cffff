import { isIP } from 'node:net';
import { isPublicAddress } from './public-address.ts';

const LONGEST = 2048;
/** Ports of web servers; any other could be a service that reads an HTTP request as its own commands. */
const PORTS: ReadonlySet<string> = new Set(['', '80', '443', '8080', '8443']);

/** Bare host of a URL: IPv6 without its brackets. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1');

/**
 * Reads the address of a webhook, once for check and call alike, so that no two readings can differ. Returns what is
 * wrong with it as a sentence that does not repeat it. `mayCallPrivate`: any host and any port will do.
 */
export function readWebhookAddress(
  text: string,
  mayCallPrivate: boolean,
): { url: URL } | { fault: string } {
  if (text.length > LONGEST)
    return { fault: `a webhook address has at most ${LONGEST} characters` };
  // Backslashes, blanks and control characters are what parsers disagree about.
  if (!/^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/i.test(text))
    return { fault: 'a webhook address is an http:// or https:// address' };
  if (!URL.canParse(text)) return { fault: 'the webhook address cannot be read' };
  const url = new URL(text);
  if (url.username !== '' || url.password !== '')
    return { fault: 'a webhook address holds no user name and no password' };
  url.hash = '';
  if (mayCallPrivate) return { url };
  if (!PORTS.has(url.port)) return { fault: 'webhooks go to port 80, 443, 8080 or 8443 alone' };
  const host = hostOf(url);
  if (isIP(host) !== 0 && !isPublicAddress(host))
    return { fault: 'webhooks go to public addresses alone' };
  if (/^(?:.*\.)?localhost\.?$/i.test(host))
    return { fault: 'webhooks go to public addresses alone' };
  return { url };
}

/** What is wrong with the address of a webhook, if anything; see `readWebhookAddress`. */
export function webhookAddressFault(text: string, mayCallPrivate: boolean): string | undefined {
  const read = readWebhookAddress(text, mayCallPrivate);
  return 'fault' in read ? read.fault : undefined;
}
