import type { ScriptedModelServer } from './demo-model-server.ts';
import { soundFile } from './sound-file.ts';

const events = (list: readonly { type: string }[]): string =>
  list.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('');

const usage = { input_tokens: 3, output_tokens: 2 };
const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'demo-chat-small',
  content: [{ type: 'text', text: 'Quiet tide.' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage,
};
const messageEvents = [
  { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'ping' },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Quiet ' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'tide.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage },
  { type: 'message_stop' },
];
const item = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text: 'Quiet tide.', annotations: [] }],
};
const response = {
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'demo-chat-small',
  output: [item],
  usage: { ...usage, total_tokens: 5 },
};
const where = { item_id: 'msg_1', output_index: 0, content_index: 0 };
const responseEvents = [
  { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
  { type: 'response.output_text.delta', ...where, delta: 'Quiet ' },
  { type: 'response.output_text.delta', ...where, delta: 'tide.' },
  { type: 'response.output_text.done', ...where, text: 'Quiet tide.' },
  { type: 'response.completed', response },
].map((event, index) => ({ ...event, sequence_number: index }));

/**
 * Lets a model server answer the protocols whose answers differ from chat: Anthropic's messages, OpenAI's responses,
 * speech. The answers are fixed: what is tested is the way there and back.
 */
export function speakAllProtocols(server: ScriptedModelServer): void {
  const answer = (path: string, streams: string | undefined, whole: string | Uint8Array): void => {
    for (const isStream of streams === undefined ? [false] : [true, false]) {
      server.fault(
        {
          kind: 'answer',
          status: 200,
          headers: {
            'Content-Type': isStream
              ? 'text/event-stream'
              : typeof whole === 'string'
                ? 'application/json'
                : 'audio/wav',
          },
          body: isStream ? (streams ?? '') : whole,
        },
        {
          times: Infinity,
          where: ({ method, target, body }) =>
            method === 'POST' &&
            target.split('?', 1)[0] === path &&
            (!isStream || body.includes('"stream":true')),
        },
      );
    }
  };
  answer('/v1/messages', events(messageEvents), JSON.stringify(message));
  answer('/v1/messages/count_tokens', undefined, JSON.stringify({ input_tokens: 3 }));
  answer('/v1/responses', events(responseEvents), JSON.stringify(response));
  answer('/v1/audio/speech', undefined, soundFile(1));
}
