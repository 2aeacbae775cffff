import type { StreamProtocol } from '../gateway/stream-protocol.ts';

/** An error as a stream says it. */
export interface StreamError {
  status: number;
  message: string;
  /** OpenAI's error type. */
  type: string;
  param: string | null;
  /** A text of Berth's or of the model server; a number where llama.cpp sent one. */
  code: unknown;
  /** Who made it: `berth`, `llama-swap`; undefined: the model's own server. */
  src: string | undefined;
}

/** Anthropic's name of an error by status. */
const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

const anthropicType = (status: number): string =>
  ANTHROPIC_TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');

/**
 * The last event of a stream that failed, in the form that makes the protocol's official clients throw: the clients of
 * OpenAI look for `error` in any event's data, also of Responses, where the fields of its own error event stand
 * beside it; Anthropic's look at the event's name. None of them waits for `[DONE]` after it.
 *
 * @param sequence number of events sent before, for Responses
 */
export function errorEvent(
  protocol: StreamProtocol | undefined,
  { status, message, type, param, code, src }: StreamError,
  sequence = 0,
): string {
  const from = src === undefined ? {} : { src };
  const error = { message, type, param, code };
  if (protocol === 'messages') {
    const own = { type: anthropicType(status), message, code };
    return `event: error\ndata: ${JSON.stringify({ type: 'error', ...from, error: own })}\n\n`;
  }
  if (protocol === 'responses') {
    const own = { type: 'error', sequence_number: sequence, code, message, param };
    return `event: error\ndata: ${JSON.stringify({ ...own, ...from, error })}\n\n`;
  }
  return `data: ${JSON.stringify({ ...from, error })}\n\n`;
}

/**
 * A sign of life to a waiting stream. A comment is one line, without a blank one, which some readers take for an empty
 * event; Anthropic's protocol has `ping` events, here with the comment in front.
 */
export function signOfLife(protocol: StreamProtocol | undefined, text: string): string {
  const comment = `: ${text}\n`;
  return protocol === 'messages' ? `${comment}event: ping\ndata: {"type":"ping"}\n\n` : comment;
}

/**
 * llama-swap's way to speak to somebody who waits for a chat: a chunk of reasoning. It has every field that typed
 * clients ask of a chunk.
 */
export function reasoningFrame(id: string, model: string, text: string): string {
  const created = Math.floor(Date.now() / 1000);
  const choices = [{ index: 0, delta: { reasoning_content: text }, finish_reason: null }];
  const chunk = { id, object: 'chat.completion.chunk', created, model, choices };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
