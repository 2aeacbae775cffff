import type { Activity } from './activity.ts';
import type { Captures } from './captures.ts';
import type { Exchange } from './exchange.ts';
import type { TokensUsed } from './generation.ts';
import type { RequestRecord } from './request-record.ts';

/** Bytes of one answer that are kept for its capture. */
const keptBytes = 1024 * 1024;

/** Adds what it meters to the activity and the captures. */
export class Meter {
  readonly #activity: Activity;
  readonly #captures: Captures;
  readonly #onRow: (id: number) => void;

  /** `onRow` is called with the id of each new row. */
  constructor(activity: Activity, captures: Captures, onRow: (id: number) => void) {
    this.#activity = activity;
    this.#captures = captures;
    this.#onRow = onRow;
  }

  /** Begins with one request; call the function returned when its record has ended. */
  begin(
    { answer, body, headers, path }: Exchange,
    record: RequestRecord,
    used: TokensUsed,
  ): () => void {
    const arrivedAt = new Date();
    answer.keepBody(keptBytes);
    return () => {
      const hasCapture = this.#captures.add(this.#activity.nextId, {
        path,
        requestHeaders: headers,
        requestBody: body,
        responseHeaders: answer.headers,
        responseBody: answer.keptBody,
      });
      const contentType = answer.headers['Content-Type'];
      const id = this.#activity.add({
        arrivedAt,
        model: record.model ?? '',
        path,
        contentType: typeof contentType === 'string' ? contentType : '',
        status: record.status ?? 0,
        used,
        durationMs: (record.endedAtMs ?? record.startedAtMs) - record.startedAtMs,
        hasCapture,
        isAborted: record.aborted,
      });
      this.#onRow(id);
    };
  }
}
