import { headerOf } from '../gateway/headers.ts';
import type { ResponseSink } from '../gateway/relay-response.ts';

/**
 * The client of a submit-and-poll route: it has its whole answer long before the job ends, so its response ends with
 * the last byte that the head announced. `onWhole` is called once then; nothing that comes later reaches the client.
 */
export function submitAnswerSink(sink: ResponseSink, onWhole: () => void): ResponseSink {
  let leftBytes = Infinity;
  let isOver = false;
  const endWhole = (): void => {
    if (leftBytes > 0) return;
    isOver = true;
    sink.end();
    onWhole();
  };
  return {
    expect: (head) => sink.expect(head),
    head: (head) => {
      leftBytes = Number(headerOf(head.headers, 'content-length') ?? Infinity);
      sink.head(head);
      endWhole();
    },
    write: async (bytes) => {
      if (isOver) return;
      leftBytes -= bytes.length;
      await sink.write(bytes);
      endWhole();
    },
    end: () => {
      if (!isOver) sink.end();
    },
    fail: (code, message) => {
      if (!isOver) sink.fail(code, message);
    },
  };
}
