import { modelJson, readJsonObject, type Endpoint, type Generation } from './generation.ts';
import { derive } from './derive.ts';
import { namedEvent } from './named-event.ts';
import { waitFor } from './pace.ts';
import { eventStream, isTokenCount, pacedTokens, wholeText, type TextPlan } from './text-plan.ts';

type Fields = Readonly<Record<string, unknown>>;

/**
 * `POST /v1/messages`: whole or as Anthropic's events, a `ping` behind the first two. The text has a length of its own,
 * or `max_tokens`, whichever is less: clients of this protocol must name a limit and mean only that.
 */
export const messages: Endpoint = async (generation) => {
  const fields = await readMessages(generation);
  if (fields === undefined) return;
  const limit = fields.max_tokens;
  if (!isTokenCount(limit)) {
    await refuse(generation, 'max_tokens: must be a whole number above 0');
    return;
  }
  const derived = derive(generation.seed);
  const plan: TextPlan = {
    derived,
    promptTokens: countOf(fields),
    tokens: Math.min(limit, derived.naturalTokens),
    isCut: limit < derived.naturalTokens,
  };
  if (fields.stream === true) await stream(generation, plan);
  else {
    const text = await wholeText(generation, plan);
    const content = [{ type: 'text', text }];
    const whole = { ...messageOf(generation, plan), ...endOf(plan), content };
    await generation.answer.send(
      200,
      modelJson,
      JSON.stringify({ ...whole, usage: usageOf(plan, plan.tokens) }),
    );
  }
};

/** `POST /v1/messages/count_tokens`: as many as the same messages count for in `usage`; takes the time of one token. */
export const countTokens: Endpoint = async (generation) => {
  const fields = await readMessages(generation);
  if (fields === undefined) return;
  await waitFor(generation.times.tokenMs, generation.answer.signal);
  const count = { input_tokens: countOf(fields) };
  await generation.answer.send(200, modelJson, JSON.stringify(count));
};

async function readMessages(generation: Generation): Promise<Fields | undefined> {
  const fields = await readJsonObject(generation);
  if (fields === undefined || Array.isArray(fields.messages)) return fields;
  await refuse(generation, 'messages: must be a list');
  return undefined;
}

/** Four bytes of prompt are a token. */
function countOf({ messages: list, system, tools }: Fields): number {
  return Math.ceil(Buffer.byteLength(JSON.stringify([system, list, tools])) / 4);
}

async function refuse({ answer }: Generation, message: string): Promise<void> {
  const error = { type: 'invalid_request_error', message };
  await answer.send(400, modelJson, JSON.stringify({ type: 'error', error }));
}

const usageOf = ({ promptTokens }: TextPlan, outputTokens: number): object => ({
  input_tokens: promptTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
});

const endOf = ({ isCut }: TextPlan): object => ({
  stop_reason: isCut ? 'max_tokens' : 'end_turn',
  stop_sequence: null,
});

/** The message before there is any text. */
function messageOf({ asked }: Generation, plan: TextPlan): object {
  return {
    id: `msg_${plan.derived.id}`,
    type: 'message',
    role: 'assistant',
    model: asked,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: usageOf(plan, 0),
  };
}

async function stream(generation: Generation, plan: TextPlan): Promise<void> {
  const { answer } = generation;
  const send = (type: string, facts: object = {}): Promise<void> =>
    answer.write(namedEvent({ type, ...facts }));
  answer.head(200, eventStream);
  await send('message_start', { message: messageOf(generation, plan) });
  await send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } });
  await send('ping');
  for await (const text of pacedTokens(generation, plan))
    await send('content_block_delta', { index: 0, delta: { type: 'text_delta', text } });
  await send('content_block_stop', { index: 0 });
  await send('message_delta', { delta: endOf(plan), usage: usageOf(plan, plan.tokens) });
  await answer.end(namedEvent({ type: 'message_stop' }));
}
