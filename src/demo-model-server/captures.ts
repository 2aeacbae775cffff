import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { withoutSecrets } from './secret-headers.ts';

/** What was said in one metered request. */
export interface Conversation {
  readonly path: string;
  readonly requestHeaders: IncomingHttpHeaders;
  readonly requestBody: Buffer;
  readonly responseHeaders: OutgoingHttpHeaders;
  /** Undefined when it was more than is kept. */
  readonly responseBody: Buffer | undefined;
}

interface Capture {
  readonly facts: object;
  readonly bytes: number;
}

/** Bytes of all bodies that are kept. */
const budget = 10 * 1024 * 1024;
/** Routes with large bodies, of which only the heads are kept. */
const headsOnly = /\/(?:audio\/(?:speech|transcriptions)|images\/\w+|txt2img|img2img|tasks\/run)$/;

/** The newest requests and answers in full, 10 MiB of bodies in all; what is older is forgotten. */
export class Captures {
  readonly #kept = new Map<number, Capture>();
  #bytes = 0;

  /** Keeps the conversation under the id of its row; false when it is larger than all that is kept. */
  add(id: number, conversation: Conversation): boolean {
    const { path, requestHeaders, requestBody, responseHeaders, responseBody } = conversation;
    const isHeadsOnly = headsOnly.test(path);
    const request = isHeadsOnly ? Buffer.alloc(0) : requestBody;
    const response = isHeadsOnly ? Buffer.alloc(0) : responseBody;
    const bytes = request.length + (response?.length ?? Infinity);
    if (response === undefined || bytes > budget) return false;
    const facts = {
      id,
      req_path: path,
      req_headers: withoutSecrets(requestHeaders),
      req_body: request.toString('base64'),
      resp_headers: withoutSecrets(responseHeaders),
      resp_body: response.toString('base64'),
    };
    this.#kept.set(id, { facts, bytes });
    this.#bytes += bytes;
    for (const [oldest, capture] of this.#kept) {
      if (this.#bytes <= budget) break;
      this.#kept.delete(oldest);
      this.#bytes -= capture.bytes;
    }
    return true;
  }

  /** The capture of a row, while it is kept. */
  find(id: number): object | undefined {
    return this.#kept.get(id)?.facts;
  }
}
