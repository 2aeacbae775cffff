import type { Answer } from './answer.ts';
import type { LogBook } from './log-book.ts';
import { waitForAbort } from './pace.ts';

/** Kinds of message on `/api/events`. */
export type DemoEventType =
  'modelStatus' | 'logData' | 'activity' | 'inflight' | 'uiConfig' | 'profileChanged';

/** One event as it stands on the wire: the data is JSON inside a JSON string, with no blank after the colons. */
export function eventFrame(type: DemoEventType, data: unknown): string {
  return `event:message\ndata:${JSON.stringify({ type, data: JSON.stringify(data) })}\n\n`;
}

/** Where the opening messages of a listener come from. */
export interface EventSources {
  /** The list of models as it is now. */
  readonly modelStatus: () => unknown;
  /** The profile in force. */
  readonly activeProfile: () => string | null;
  /** The requests under way. */
  readonly inflight: () => object;
  readonly logBook: LogBook;
}

/** Everybody who listens on `/api/events`. */
export class EventFeed {
  readonly #listeners = new Set<Answer>();
  readonly #sources: EventSources;

  constructor(sources: EventSources) {
    this.#sources = sources;
    sources.logBook.listen('all', (data, { kind }) =>
      this.#tell('logData', { source: kind, data }),
    );
  }

  /** Sends the state of things, then every change until the client leaves. */
  async listen(answer: Answer): Promise<void> {
    answer.head(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      'X-Accel-Buffering': 'no',
    });
    const { activeProfile, inflight, logBook, modelStatus } = this.#sources;
    const opening = [
      eventFrame('logData', { source: 'proxy', data: logBook.history('proxy') }),
      eventFrame('logData', { source: 'upstream', data: logBook.history('upstream') }),
      eventFrame('modelStatus', modelStatus()),
      eventFrame('uiConfig', {}),
      eventFrame('profileChanged', { active: activeProfile() }),
      eventFrame('inflight', inflight()),
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
    this.#tell('modelStatus', this.#sources.modelStatus());
  }

  profileChanged(): void {
    this.#tell('profileChanged', { active: this.#sources.activeProfile() });
    this.modelsChanged();
  }

  /** A request came, or went. */
  inflightChanged(change: object): void {
    this.#tell('inflight', change);
  }

  /** There is a new row in the activity. */
  activityAdded(id: number): void {
    this.#tell('activity', { id });
  }

  #tell(type: DemoEventType, data: unknown): void {
    if (this.#listeners.size === 0) return;
    const frame = eventFrame(type, data);
    for (const listener of this.#listeners) {
      // As at the original, a slow reader loses messages.
      if (listener.isBehind) continue;
      // A listener that has just left is taken off the list by its own `listen`.
      listener.write(frame).catch(() => undefined);
    }
  }
}
