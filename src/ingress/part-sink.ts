import { headerOf } from '../gateway/headers.ts';
import type { ResponseSink } from '../gateway/relay-response.ts';
import type { ResponseHead } from '../ports/response-log.ts';

/** A part of an answer. */
export interface Part {
  /** First byte. */
  readonly from: number;
  /** First byte that is not of the part; absent: the part goes to the end. */
  readonly to?: number;
  /** Bytes of the whole; given when the client asked for a range of it. */
  readonly totalBytes?: number;
}

/**
 * A client that wants a part of an answer, relayed from `from` on: its head says how long the part is and, to one that
 * asked for a range, which. `onWhole` is called once the part is.
 */
export function partSink(sink: ResponseSink, part: Part, onWhole: () => void): ResponseSink {
  let leftBytes = part.to === undefined ? Infinity : part.to - part.from;
  let isOver = false;
  return {
    expect: (head) => sink.expect(partHead(head, part)),
    head: (head) => sink.head(partHead(head, part)),
    write: async (bytes) => {
      if (isOver) return;
      const piece = bytes.subarray(0, leftBytes);
      leftBytes -= piece.length;
      await sink.write(piece);
      if (leftBytes > 0) return;
      isOver = true;
      sink.end();
      onWhole();
    },
    end: () => {
      if (!isOver) sink.end();
    },
    fail: (code, message) => {
      if (!isOver) sink.fail(code, message);
    },
  };
}

function partHead({ status, headers }: ResponseHead, part: Part): ResponseHead {
  const { from, to, totalBytes } = part;
  const length = Number(headerOf(headers, 'content-length') ?? NaN);
  const end = to ?? length;
  const others = headers.filter(
    (_, index) => headers[index - (index % 2)]?.toLowerCase() !== 'content-length',
  );
  return {
    status: totalBytes === undefined ? status : 206,
    headers: [
      ...others,
      ...(Number.isNaN(end) ? [] : ['Content-Length', String(Math.max(0, end - from))]),
      ...(totalBytes === undefined
        ? []
        : ['Content-Range', `bytes ${from}-${end - 1}/${totalBytes}`]),
    ],
  };
}
