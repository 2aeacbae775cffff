import type { Answer } from './answer.ts';
import type { RequestRecord } from './request-record.ts';
import { waitForAbort } from './pace.ts';

/** Kinds of message on `/api/events`. */
export type DemoEventType =
  'modelStatus' | 'logData' | 'activity' | 'inflight' | 'uiConfig' | 'profileChanged';

/** One event as it stands on the wire: the data is JSON inside a JSON string, with no blank after the colons. */
export function eventFrame(type: DemoEventType, data: unknown): string {
  return `event:message\ndata:${JSON.stringify({ type, data: JSON.stringify(data) })}\n\n`;
}

const secretHeaders = ['authorization', 'proxy-authorization', 'cookie', 'x-api-key'];

/** The row of one running or waiting request in the `inflight` messages; credentials are masked. */
export function inflightEntry(record: RequestRecord, remoteIp: string, wallClock: Date): object {
  const headers = Object.entries(record.headers).map(([name, value]) => [
    name,
    secretHeaders.includes(name) ? '[REDACTED]' : String(value),
  ]);
  return {
    id: `${record.id}`,
    timestamp: wallClock.toISOString(),
    model: record.model,
    req_path: record.target.split('?')[0],
    method: record.method,
    req_headers: Object.fromEntries(headers) as object,
    remote_ip: remoteIp,
    resp_headers: {},
    resp_bytes: 0,
    elapsed_ms: 0,
  };
}

/** Everybody who listens on `/api/events`. */
export class EventFeed {
  readonly #listeners = new Set<Answer>();
  readonly #inflight = new Map<string, object>();
  readonly #modelStatus: () => unknown;
  readonly #activeProfile: () => string | null;

  /** `modelStatus` gives the list of models as it is now, `activeProfile` the profile in force. */
  constructor(modelStatus: () => unknown, activeProfile: () => string | null) {
    this.#modelStatus = modelStatus;
    this.#activeProfile = activeProfile;
  }

  /** Sends the state of things, then every change until the client leaves. */
  async listen(answer: Answer): Promise<void> {
    answer.head(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      'X-Accel-Buffering': 'no',
    });
    const opening = [
      eventFrame('logData', { source: 'proxy', data: '' }),
      eventFrame('logData', { source: 'upstream', data: '' }),
      eventFrame('modelStatus', this.#modelStatus()),
      eventFrame('uiConfig', {}),
      eventFrame('profileChanged', { active: this.#activeProfile() }),
      eventFrame('inflight', { operation: 'snapshot', requests: [...this.#inflight.values()] }),
    ];
    this.#listeners.add(answer);
    try {
      await answer.write(opening.join(''));
      await waitForAbort(answer.signal);
    } finally {
      this.#listeners.delete(answer);
    }
  }

  modelsChanged(): void {
    this.#send(eventFrame('modelStatus', this.#modelStatus()));
  }

  profileChanged(): void {
    this.#send(eventFrame('profileChanged', { active: this.#activeProfile() }));
    this.modelsChanged();
  }

  requestBegan(id: number, entry: object): void {
    this.#inflight.set(`${id}`, entry);
    this.#send(eventFrame('inflight', { operation: 'upsert', request: entry }));
  }

  requestEnded(id: number): void {
    if (this.#inflight.delete(`${id}`)) {
      this.#send(eventFrame('inflight', { operation: 'remove', id: `${id}` }));
    }
  }

  #send(frame: string): void {
    for (const listener of this.#listeners) {
      // As at the original, a slow reader loses messages.
      if (listener.isBehind) continue;
      // A listener that has just left is taken off the list by its own `listen`.
      listener.write(frame).catch(() => undefined);
    }
  }
}
