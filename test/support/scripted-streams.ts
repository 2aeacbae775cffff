import type { Socket } from 'node:net';
import { answerOf } from './raw-upstream.ts';
import type { RawUpstream, UpstreamRequest } from './raw-upstream.ts';

/** What a test's model server does with one request. */
export type Play = (socket: Socket) => void | Promise<void>;

/** Requests name themselves in this header; the model server plays what was set for that name. */
export const NAME_HEADER = 'x-test-name';

/** Plays by name; a request without one gets an answer in JSON. */
export class ScriptedStreams {
  private readonly plays = new Map<string, Play>();
  private readonly seen = new Map<string, Socket>();

  constructor(upstream: RawUpstream) {
    upstream.script = async (socket, request) => {
      const name = nameOf(request);
      this.seen.set(name, socket);
      const play = this.plays.get(name);
      if (play === undefined) socket.write(answerOf(200, 'application/json', '{"ok":true}'));
      else await play(socket);
    };
  }

  /** From now on requests of this name get this. */
  set(name: string, play: Play): void {
    this.plays.set(name, play);
  }

  /** Holds requests of this name until `release`, then goes on with another play. */
  hold(name: string, then: Play = ok): { release: () => void } {
    let release = (): void => undefined;
    const until = new Promise<void>((resolve) => (release = resolve));
    this.set(name, async (socket) => {
      await until;
      await then(socket);
    });
    return { release };
  }

  /** The connection a request of this name came by; undefined while none came. */
  socketOf(name: string): Socket | undefined {
    return this.seen.get(name);
  }
}

/** Answers in JSON. */
export const ok: Play = (socket) => {
  socket.write(answerOf(200, 'application/json', '{"ok":true}'));
};

/** The head of a chunked answer of this type. */
export const chunkedHead = (type = 'text/event-stream', status = 200): string =>
  `HTTP/1.1 ${status} Any\r\nContent-Type: ${type}\r\nTransfer-Encoding: chunked\r\n\r\n`;

/** One chunk. */
export const chunkOf = (text: string): string =>
  `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

/** The end of a chunked body. */
export const LAST_CHUNK = '0\r\n\r\n';

/** A whole stream of these events, each in a chunk. */
export const streamOf =
  (events: readonly string[]): Play =>
  (socket) => {
    socket.write(chunkedHead() + events.map(chunkOf).join('') + LAST_CHUNK);
  };

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (type: string, rest: object = {}): string =>
  `event: ${type}\n${data({ type, ...rest })}`;

const chunk = (delta: object, finish: string | null): string =>
  data({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
const piece = (text: string, finish: string | null): string =>
  data({
    id: 'cmpl-1',
    object: 'text_completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, text, logprobs: null, finish_reason: finish }],
  });
const response = (status: string): object => ({
  response: { id: 'resp_1', object: 'response', status, model: 'm', output: [] },
});

/** A short answer in each protocol, event by event. */
export const STREAMS = {
  chat: [
    chunk({ role: 'assistant', content: 'har' }, null),
    chunk({ content: 'bour' }, null),
    chunk({}, 'stop'),
    'data: [DONE]\n\n',
  ],
  completions: [piece('har', null), piece('bour', null), piece('', 'stop'), 'data: [DONE]\n\n'],
  responses: [
    named('response.created', { sequence_number: 0, ...response('in_progress') }),
    named('response.output_text.delta', {
      sequence_number: 1,
      item_id: 'i',
      output_index: 0,
      content_index: 0,
      delta: 'harbour',
    }),
    named('response.completed', { sequence_number: 2, ...response('completed') }),
  ],
  messages: [
    named('message_start', {
      message: {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    }),
    named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    named('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'harbour' } }),
    named('content_block_stop', { index: 0 }),
    named('message_delta', {
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 2 },
    }),
    named('message_stop'),
  ],
} as const;

function nameOf({ headers }: UpstreamRequest): string {
  const line = headers.find((header) => header.toLowerCase().startsWith(`${NAME_HEADER}:`));
  return line?.slice(NAME_HEADER.length + 1).trim() ?? '';
}
