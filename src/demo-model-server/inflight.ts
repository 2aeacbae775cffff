import type { RequestRecord } from './request-record.ts';
import { withoutSecrets } from './secret-headers.ts';

/** The row of one running or waiting request in the `inflight` messages; credentials are masked. */
export function inflightEntry(record: RequestRecord, remoteIp: string, wallClock: Date): object {
  return {
    id: `${record.id}`,
    timestamp: wallClock.toISOString(),
    model: record.model,
    req_path: record.target.split('?')[0],
    method: record.method,
    req_headers: withoutSecrets(record.headers),
    remote_ip: remoteIp,
    resp_headers: {},
    resp_bytes: 0,
    elapsed_ms: 0,
  };
}

interface InflightRequest {
  readonly entry: object;
  readonly cancel: () => void;
}

/** The requests that wait for a model or run on one. */
export class Inflight {
  readonly #requests = new Map<string, InflightRequest>();
  readonly #onChange: (change: object) => void;

  /** `onChange` is called with each change as the `inflight` messages tell it. */
  constructor(onChange: (change: object) => void) {
    this.#onChange = onChange;
  }

  /** All of them, as a message tells them. */
  snapshot(): object {
    return {
      operation: 'snapshot',
      requests: [...this.#requests.values()].map(({ entry }) => entry),
    };
  }

  /** `cancel` ends the request there and then. */
  began(id: number, entry: object, cancel: () => void): void {
    this.#requests.set(`${id}`, { entry, cancel });
    this.#onChange({ operation: 'upsert', request: entry });
  }

  ended(id: number): void {
    if (this.#requests.delete(`${id}`)) this.#onChange({ operation: 'remove', id: `${id}` });
  }

  /** Cancels a request; false when there is none of that id. */
  cancel(id: string): boolean {
    const request = this.#requests.get(id);
    request?.cancel();
    return request !== undefined;
  }
}
