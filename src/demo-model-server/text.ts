import type { Derived } from './derive.ts';
import { modelJson, readJsonObject, type Endpoint, type Generation } from './generation.ts';
import { eventStream, pacedTokens, planText, wholeText, type TextPlan } from './text-plan.ts';

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

async function complete(generation: Generation, protocol: Protocol): Promise<void> {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const limit = fields.max_completion_tokens ?? fields.max_tokens;
  const plan = await planText(generation, 'max_tokens', limit);
  if (plan === undefined) return;
  const options = fields.stream_options as { include_usage?: unknown } | null | undefined;
  await (fields.stream === true
    ? streamText(generation, protocol, plan, options?.include_usage === true)
    : sendText(generation, protocol, plan));
}

const finishOf = ({ isCut }: TextPlan): string => (isCut ? 'length' : 'stop');

const usageOf = ({ promptTokens, tokens }: TextPlan): object => ({
  prompt_tokens: promptTokens,
  completion_tokens: tokens,
  total_tokens: promptTokens + tokens,
});

function frame(generation: Generation, idPrefix: string, object: string, derived: Derived): object {
  return {
    id: idPrefix + derived.id,
    object,
    created: derived.created,
    model: generation.asked,
    system_fingerprint: 'demo',
  };
}

async function sendText(generation: Generation, protocol: Protocol, plan: TextPlan): Promise<void> {
  const text = await wholeText(generation, plan);
  const body = JSON.stringify({
    ...frame(generation, protocol.idPrefix, protocol.object, plan.derived),
    choices: [{ index: 0, ...protocol.whole(text), finish_reason: finishOf(plan) }],
    usage: usageOf(plan),
  });
  await generation.answer.send(200, modelJson, body);
}

async function streamText(
  generation: Generation,
  protocol: Protocol,
  plan: TextPlan,
  includeUsage: boolean,
): Promise<void> {
  const { answer } = generation;
  const head = frame(generation, protocol.idPrefix, protocol.chunkObject, plan.derived);
  const event = (choices: object[], more: object = {}): string =>
    `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
  const piece = (choice: object, finish: string | null): string =>
    event([{ index: 0, ...choice, finish_reason: finish }]);

  answer.head(200, eventStream);
  if (protocol.opening !== undefined) await answer.write(piece(protocol.opening, null));
  for await (const token of pacedTokens(generation, plan))
    await answer.write(piece(protocol.piece(token), null));
  await answer.write(piece(protocol.piece(''), finishOf(plan)));
  if (includeUsage) await answer.write(event([], { usage: usageOf(plan) }));
  await answer.end('data: [DONE]\n\n');
}
