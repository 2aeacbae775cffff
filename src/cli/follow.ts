import { createParser } from 'eventsource-parser';
import type { EventSourceMessage } from 'eventsource-parser';
import { isFinal } from './berth-client.ts';
import type { BerthClient } from './berth-client.ts';
import { CommandError } from './command-error.ts';
import type { Terminal } from './terminal.ts';

/** Something that changes until it is over, and how to learn of it. */
export interface Followed<T> {
  /** Its event stream, and the object itself, below the base address. */
  readonly events: string;
  readonly self: string;
  /** What an event says; undefined: nothing. */
  readonly fromEvent: (event: EventSourceMessage) => T | undefined;
  /** What the object says. */
  readonly fromObject: (json: unknown) => T;
  readonly isOver: (news: T) => boolean;
}

/** Streams that break off without an event until only the object is looked at. */
const MOST_SILENT = 3;
/** Between two looks, in ms. */
const LOOK_MS = 2000;

/**
 * What happens to it until it is over. A stream that breaks off is taken up after the last event that was seen; where
 * streams do not come through, the object is looked at again and again. Throws Refusal when it is not to be seen.
 */
export async function* follow<T>(
  client: BerthClient,
  terminal: Terminal,
  { events, self, fromEvent, fromObject, isOver }: Followed<T>,
): AsyncGenerator<T, void, undefined> {
  let [lastId, silent] = ['', 0];
  for (;;) {
    if (silent < MOST_SILENT) {
      silent += 1;
      try {
        for await (const event of streamOf(client, events, lastId)) {
          silent = 0;
          lastId = event.id ?? lastId;
          const news = fromEvent(event);
          if (news === undefined) continue;
          yield news;
          if (isOver(news)) return;
        }
      } catch (error) {
        terminal.check();
        if (isFinal(error)) throw error;
      }
    }
    const news = fromObject(await client.json(self));
    yield news;
    if (isOver(news)) return;
    await terminal.sleep(LOOK_MS);
  }
}

async function* streamOf(
  client: BerthClient,
  path: string,
  lastId: string,
): AsyncGenerator<EventSourceMessage, void, undefined> {
  const { statusCode, headers, body } = await client.call(path, {
    headers: {
      accept: 'text/event-stream',
      ...(lastId === '' ? {} : { 'last-event-id': lastId }),
    },
  });
  const type = headers['content-type'];
  if (statusCode !== 200 || typeof type !== 'string' || !type.startsWith('text/event-stream')) {
    await body.dump();
    if (statusCode === 204) return;
    throw new CommandError(`${path} answers with no event stream`);
  }
  const seen: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void seen.push(event) });
  const decoder = new TextDecoder();
  for await (const piece of body as AsyncIterable<Buffer>) {
    parser.feed(decoder.decode(piece, { stream: true }));
    yield* seen.splice(0);
  }
}
