import { derive, tokensOf, type Derived } from './derive.ts';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, type Endpoint, type Generation } from './generation.ts';
import { monotonicMs, waitFor, waitUntil } from './pace.ts';

const mostTokens = 1_000_000;

/** What differs between the chat and the plain completion protocol. */
interface Protocol {
  readonly idPrefix: string;
  readonly object: string;
  readonly chunkObject: string;
  /** The choice of the first event of a stream; undefined when the protocol has no such event. */
  readonly opening?: object;
  /** The part of a streamed choice that carries text; empty text closes the stream. */
  readonly piece: (text: string) => object;
  /** The part of a whole choice that carries text. */
  readonly whole: (text: string) => object;
}

const chat: Protocol = {
  idPrefix: 'chatcmpl-',
  object: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  opening: { delta: { role: 'assistant', content: '' } },
  piece: (text) => ({ delta: text === '' ? {} : { content: text } }),
  whole: (text) => ({ message: { role: 'assistant', content: text } }),
};

const plain: Protocol = {
  idPrefix: 'cmpl-',
  object: 'text_completion',
  chunkObject: 'text_completion',
  piece: (text) => ({ text, logprobs: null }),
  whole: (text) => ({ text, logprobs: null }),
};

/** `POST /v1/chat/completions`: one event a token when streamed; exactly `max_tokens` tokens when that is given. */
export const chatCompletions: Endpoint = (generation) => complete(generation, chat);

/** `POST /v1/completions`, likewise. */
export const completions: Endpoint = (generation) => complete(generation, plain);

/** The parts of a text answer that do not depend on the protocol. */
interface Plan {
  readonly derived: Derived;
  readonly tokens: number;
  readonly finish: 'length' | 'stop';
  readonly usage: object;
  readonly includeUsage: boolean;
}

async function complete(generation: Generation, protocol: Protocol): Promise<void> {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const asked = fields.max_completion_tokens ?? fields.max_tokens;
  if (asked !== undefined && asked !== null && !isTokenCount(asked)) {
    await sendModelError(generation.answer, 400, 'max_tokens must be a whole number above 0');
    return;
  }
  const derived = derive(generation.seed);
  const tokens = asked ?? derived.naturalTokens;
  const promptTokens = Math.ceil(generation.body.length / 4);
  const options = fields.stream_options as { include_usage?: unknown } | null | undefined;
  const plan: Plan = {
    derived,
    tokens,
    finish: asked === undefined || asked === null ? 'stop' : 'length',
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: tokens,
      total_tokens: promptTokens + tokens,
    },
    includeUsage: options?.include_usage === true,
  };
  await (fields.stream === true
    ? streamText(generation, protocol, plan)
    : sendText(generation, protocol, plan));
}

function isTokenCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= mostTokens;
}

function frame(generation: Generation, idPrefix: string, object: string, derived: Derived): object {
  return {
    id: idPrefix + derived.id,
    object,
    created: derived.created,
    model: generation.asked,
    system_fingerprint: 'demo',
  };
}

async function sendText(generation: Generation, protocol: Protocol, plan: Plan): Promise<void> {
  await waitFor(plan.tokens * generation.times.tokenMs, generation.answer.signal);
  const text = [...tokensOf(generation.seed, plan.tokens)].join('');
  const body = JSON.stringify({
    ...frame(generation, protocol.idPrefix, protocol.object, plan.derived),
    choices: [{ index: 0, ...protocol.whole(text), finish_reason: plan.finish }],
    usage: plan.usage,
  });
  await generation.answer.send(200, modelJson, body);
}

async function streamText(generation: Generation, protocol: Protocol, plan: Plan): Promise<void> {
  const { answer, times } = generation;
  const head = frame(generation, protocol.idPrefix, protocol.chunkObject, plan.derived);
  const event = (choices: object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
  const piece = (choice: object, finish: string | null): string =>
    event([{ index: 0, ...choice, finish_reason: finish }]);

  const startedMs = monotonicMs();
  answer.head(200, {
    'Content-Type': 'text/event-stream',
    'Cache-Control': 'no-cache',
    'X-Accel-Buffering': 'no',
  });
  if (protocol.opening !== undefined) await answer.write(piece(protocol.opening, null));
  let sent = 0;
  for (const token of tokensOf(generation.seed, plan.tokens)) {
    sent += 1;
    await waitUntil(startedMs + sent * times.tokenMs, answer.signal);
    await answer.write(piece(protocol.piece(token), null));
  }
  await answer.write(piece(protocol.piece(''), plan.finish));
  if (plan.includeUsage) await answer.write(event([], { usage: plan.usage }));
  await answer.end('data: [DONE]\n\n');
}
