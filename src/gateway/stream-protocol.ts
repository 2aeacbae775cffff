import type { StreamEvent } from './event-stream.ts';

/** Protocols of streamed text; they differ in how a stream ends, how it says an error, and what a sign of life is. */
export type StreamProtocol = 'chat' | 'completions' | 'completion' | 'responses' | 'messages';

const PROTOCOLS: readonly [ending: RegExp, protocol: StreamProtocol][] = [
  [/\/chat\/completions$/, 'chat'],
  [/\/completions$/, 'completions'],
  [/\/(?:completion|infill)$/, 'completion'],
  [/\/responses$/, 'responses'],
  [/\/messages$/, 'messages'],
];

/** The protocol spoken at a path, which may lie below `/upstream/<model>`; `target` may have a query. */
export function protocolOf(target: string): StreamProtocol | undefined {
  const path = target.split('?', 1)[0] ?? '';
  return PROTOCOLS.find(([ending]) => ending.test(path))?.[1];
}

/**
 * What an event says of its stream. `done`: the protocol's last word. `finished`: the answer is whole, more may follow
 * (usage). `error`: the model server says that it failed.
 */
export type StreamSign = 'piece' | 'finished' | 'done' | 'error';

/** Reads an event's sign; of a stream of no known protocol only errors are told. */
export function signOf(protocol: StreamProtocol | undefined, event: StreamEvent): StreamSign {
  const { name, data, hasErrorField } = event;
  if (hasErrorField || name === 'error') return 'error';
  if (data.trim() === '[DONE]') return 'done';
  if (protocol === 'responses' || protocol === 'messages') {
    const type = name === '' ? typeOf(data) : name;
    if (LAST.has(type)) return 'done';
    return type === 'error' || type === 'response.failed' ? 'error' : 'piece';
  }
  if (data.includes('"error"') && saysError(data)) return 'error';
  // Without `/v1` before it, llama-server's `completions` is its own protocol.
  const isLlama = protocol === 'completion' || protocol === 'completions';
  if (isLlama && /"stop"\s*:\s*true/.test(data)) return 'done';
  return /"finish_reason"\s*:\s*"/.test(data) ? 'finished' : 'piece';
}

const LAST: ReadonlySet<string> = new Set([
  'response.completed',
  'response.incomplete',
  'message_stop',
]);

function saysError(data: string): boolean {
  const parsed = parse(data);
  return (parsed.error ?? null) !== null && parsed.error !== false;
}

function typeOf(data: string): string {
  // A long event is known by its beginning alone.
  const first = /^\s*\{\s*"type"\s*:\s*"([^"]+)"/.exec(data)?.[1];
  if (first !== undefined) return first;
  const { type } = parse(data);
  return typeof type === 'string' ? type : '';
}

function parse(data: string): { error?: unknown; type?: unknown } {
  try {
    const parsed: unknown = JSON.parse(data);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}
