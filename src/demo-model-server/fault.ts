import type { OutgoingHttpHeaders } from 'node:http';
import type { Answer, Cut } from './answer.ts';
import { waitFor, waitForAbort, waitForFact } from './pace.ts';

/** Something that goes wrong with one request. Those marked (loaded) happen after its model has been loaded. */
export type DemoFault =
  /** Answers at once with this instead; the request never takes the GPU. */
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers?: OutgoingHttpHeaders;
      readonly body?: string | Uint8Array;
    }
  /** Takes the request and never answers. */
  | { readonly kind: 'silence' }
  /** Closes the socket before any byte of an answer. */
  | { readonly kind: 'hang_up' }
  /** Writes these bytes as they are, then closes the socket or keeps it open in silence. */
  | { readonly kind: 'raw'; readonly bytes: string | Uint8Array; readonly close: boolean }
  /** (loaded) Sends a head and perhaps a first piece, then nothing until the client leaves. */
  | {
      readonly kind: 'head_then_silence';
      readonly status: number;
      readonly headers: OutgoingHttpHeaders;
      readonly firstPiece?: string;
    }
  /** (loaded) Sends a head, then the piece every so many milliseconds so many times, then nothing. */
  | {
      readonly kind: 'drip';
      readonly headers: OutgoingHttpHeaders;
      readonly piece: string;
      readonly everyMs: number;
      readonly times: number;
    }
  /** (loaded) The usual answer, broken off. */
  | ({ readonly kind: 'cut' } & Cut)
  /** (loaded) The usual answer in pieces of at most so many bytes. */
  | { readonly kind: 'slices'; readonly bytes: number }
  /** (loaded) The usual answer, generated to its end even when the client has left. */
  | { readonly kind: 'deaf' }
  /** (loaded) Waits for `until`, then goes on with the fault it brings, else with the usual answer. */
  | {
      readonly kind: 'hold';
      readonly until: Promise<DemoFault | undefined>;
      /** Called when the wait begins. */
      readonly onArrival?: () => void;
    };

/** Whether the fault takes the place of everything, the load of the model included. */
export function strikesBeforeLoad(fault: DemoFault): boolean {
  return ['answer', 'silence', 'hang_up', 'raw'].includes(fault.kind);
}

/** Performs the fault; true when the usual answer is still to be given. Throws what the answer throws. */
export async function performFault(fault: DemoFault, answer: Answer): Promise<boolean> {
  switch (fault.kind) {
    case 'answer':
      await answer.send(fault.status, fault.headers ?? {}, fault.body ?? '');
      return false;
    case 'silence':
      await waitForAbort(answer.signal);
      return false;
    case 'hang_up':
      answer.hangUp();
      return false;
    case 'raw':
      await answer.raw(fault.bytes, fault.close);
      return false;
    case 'head_then_silence':
      answer.head(fault.status, fault.headers);
      if (fault.firstPiece !== undefined) await answer.write(fault.firstPiece);
      await waitForAbort(answer.signal);
      return false;
    case 'drip':
      answer.head(200, fault.headers);
      for (let sent = 0; sent < fault.times; sent += 1) {
        await waitFor(fault.everyMs, answer.signal);
        await answer.write(fault.piece);
      }
      await waitForAbort(answer.signal);
      return false;
    case 'cut':
      answer.breakOff(fault);
      return true;
    case 'slices':
      answer.slice(fault.bytes);
      return true;
    case 'deaf':
      answer.ignoreClient();
      return true;
    case 'hold': {
      fault.onArrival?.();
      const next = await waitForFact(fault.until, answer.signal);
      return next === undefined || performFault(next, answer);
    }
  }
}
