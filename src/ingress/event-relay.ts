import { EventStreamReader } from '../gateway/event-stream.ts';
import { signOf } from '../gateway/stream-protocol.ts';
import type { StreamProtocol } from '../gateway/stream-protocol.ts';

/** Bytes of an unfinished event that are held; a longer one goes out as it comes. */
const HELD_BYTES = 64 * 1024;

/**
 * An event stream on its way to a client, let through at event borders: what breaks off in the middle of an event can
 * then still be followed by another one, and a sign of life put in between. Bytes are neither changed nor joined.
 */
export class EventRelay {
  private readonly reader: EventStreamReader;
  private held: Buffer[] = [];
  private heldBytes = 0;
  /** Whether part of an unfinished event has gone out. */
  private isInside = false;
  /** Whole events so far. */
  events = 0;
  /** Whether the stream itself said its end or an error. */
  hasSpoken = false;

  constructor(protocol: StreamProtocol | undefined) {
    this.reader = new EventStreamReader((event) => {
      this.events += 1;
      const sign = signOf(protocol, event);
      if (sign === 'done' || sign === 'error') this.hasSpoken = true;
    });
  }

  /** Whether something may be put in after what has gone out. */
  get isOpen(): boolean {
    return !this.isInside;
  }

  /** Takes the next bytes in and returns what may go out now, in order. */
  pass(bytes: Buffer): Buffer[] {
    const border = this.reader.push(bytes);
    if (border === bytes.length) return this.release(bytes);
    if (border >= 0) {
      const out = this.release(bytes.subarray(0, border));
      this.hold(bytes.subarray(border));
      return out;
    }
    if (this.isInside) return [bytes];
    this.hold(bytes);
    if (this.heldBytes <= HELD_BYTES) return [];
    this.isInside = true;
    return this.drop();
  }

  /** What is held although no border came: for an end that the model server meant. */
  rest(): Buffer[] {
    this.reader.end();
    return this.drop();
  }

  private release(bytes: Buffer): Buffer[] {
    this.isInside = false;
    return bytes.length > 0 ? [...this.drop(), bytes] : this.drop();
  }

  private hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.held.push(bytes);
    this.heldBytes += bytes.length;
  }

  private drop(): Buffer[] {
    const out = this.held;
    this.held = [];
    this.heldBytes = 0;
    return out;
  }
}
