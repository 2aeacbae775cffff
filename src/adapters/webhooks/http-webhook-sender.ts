import { lookup as resolveName } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';
import { request as requestPlain } from 'node:http';
import type { IncomingMessage } from 'node:http';
import { request as requestTls } from 'node:https';
import { isIP } from 'node:net';
import type { LookupFunction } from 'node:net';
import type { WebhookAttempt, WebhookDelivery, WebhookSender } from '../../ports/webhook-sender.ts';
import { isPublicAddress } from './public-address.ts';
import { hostOf, readWebhookAddress } from './webhook-address.ts';
import { webhookSignature } from './webhook-signature.ts';

/** Bytes of an answer that are taken off the socket; nothing is read out of them. */
const ANSWER_BYTES = 64 * 1024;

/** How webhooks are sent. */
export interface HttpWebhookSenderOptions {
  /** `whsec_` and the signing key in base64. */
  secret: string;
  /** Also calls loopback and private addresses, on any port. */
  mayCallPrivate: boolean;
  /** From the look-up of the name to the status line, in ms. */
  timeoutMs: number;
  /** All addresses of a name; default: the system's resolver. */
  resolve?: (host: string) => Promise<LookupAddress[]>;
}

/**
 * Sends webhooks in the form of Standard Webhooks. The address may be anybody's idea: its name is looked up once, each
 * of its addresses has to be public, and the connection goes to those very addresses; no redirect is followed, nothing
 * of the answer but its status is used, and no proxy of the environment is asked.
 */
export class HttpWebhookSender implements WebhookSender {
  private readonly options: Required<HttpWebhookSenderOptions>;

  constructor(options: HttpWebhookSenderOptions) {
    const resolve = async (host: string) => resolveName(host, { all: true });
    this.options = { resolve, ...options };
  }

  async send(delivery: WebhookDelivery): Promise<WebhookAttempt> {
    const read = readWebhookAddress(delivery.address, this.options.mayCallPrivate);
    if ('fault' in read) return { kind: 'forbidden', reason: read.fault };
    const signal = AbortSignal.timeout(this.options.timeoutMs);
    try {
      const addresses = await inTime(this.addressesOf(read.url), signal);
      if (addresses === 'forbidden')
        return { kind: 'forbidden', reason: 'webhooks go to public addresses alone' };
      return verdict(await this.post(read.url, addresses, delivery, signal));
    } catch (error) {
      return { kind: 'failed', reason: signal.aborted ? 'timeout' : codeOf(error) };
    }
  }

  private async addressesOf(url: URL): Promise<LookupAddress[] | 'forbidden'> {
    const host = hostOf(url);
    const family = isIP(host);
    const found = family === 0 ? await this.options.resolve(host) : [{ address: host, family }];
    const isAllowed = ({ address }: LookupAddress): boolean =>
      this.options.mayCallPrivate || isPublicAddress(address);
    return found.every(isAllowed) ? found : 'forbidden';
  }

  private async post(
    url: URL,
    addresses: readonly LookupAddress[],
    { id, body }: WebhookDelivery,
    signal: AbortSignal,
  ): Promise<number> {
    const timestamp = Math.floor(Date.now() / 1000);
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'berth-webhooks/1',
      'webhook-id': id,
      'webhook-timestamp': String(timestamp),
      'webhook-signature': webhookSignature(this.options.secret, { id, timestamp, body }),
    };
    const send = url.protocol === 'https:' ? requestTls : requestPlain;
    return new Promise((resolve, reject) => {
      const options = { method: 'POST', headers, lookup: pinned(addresses), agent: false, signal };
      const request = send(url, options, (response) => {
        response.on('error', () => undefined);
        takeOff(response);
        resolve(response.statusCode ?? 0);
      });
      request.on('error', reject);
      request.end(body);
    });
  }
}

/** Stands in for the look-up a connection would make: whatever it asks, it gets the addresses that were checked. */
function pinned(addresses: readonly LookupAddress[]): LookupFunction {
  return (_host, options, callback) => {
    const [first] = addresses;
    if (first === undefined) {
      callback(Object.assign(new Error('the name has no address'), { code: 'ENOTFOUND' }), '', 0);
    } else if (options.all === true) callback(null, [...addresses]);
    else callback(null, first.address, first.family);
  };
}

/** Lets a short answer end in good order and cuts a long one off. */
function takeOff(response: IncomingMessage): void {
  let left = ANSWER_BYTES;
  response.on('data', (piece: Buffer) => {
    left -= piece.length;
    if (left < 0) response.destroy();
  });
}

function verdict(status: number): WebhookAttempt {
  if (status >= 200 && status < 300) return { kind: 'delivered', status };
  if (status === 410) return { kind: 'unwanted', status };
  return { kind: 'failed', reason: `status ${status}` };
}

async function inTime<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('too late')), { once: true });
    work.then(resolve, reject);
  });
}

const codeOf = (error: unknown): string => {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === 'string' ? code : 'error';
};
