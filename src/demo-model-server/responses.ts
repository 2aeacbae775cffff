import { modelJson, readJsonObject, type Endpoint, type Generation } from './generation.ts';
import { namedEvent } from './named-event.ts';
import { eventStream, pacedTokens, planText, wholeText, type TextPlan } from './text-plan.ts';

type Status = 'in_progress' | 'completed' | 'incomplete';

/**
 * `POST /v1/responses`: whole or as the events of OpenAI's Responses; exactly `max_output_tokens` tokens when that is
 * given, and the response is then incomplete.
 */
export const responses: Endpoint = async (generation) => {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const plan = await planText(generation, 'max_output_tokens', fields.max_output_tokens);
  if (plan === undefined) return;
  const reply = new Reply(generation, plan, fields);
  if (fields.stream === true) await stream(generation, plan, reply);
  else {
    const text = await wholeText(generation, plan);
    await generation.answer.send(200, modelJson, JSON.stringify(reply.response(text)));
  }
};

/** The objects of one response as it grows. */
class Reply {
  readonly itemId: string;
  readonly #generation: Generation;
  readonly #plan: TextPlan;
  readonly #fields: Readonly<Record<string, unknown>>;

  constructor(generation: Generation, plan: TextPlan, fields: Readonly<Record<string, unknown>>) {
    this.itemId = `msg_${plan.derived.id}`;
    this.#generation = generation;
    this.#plan = plan;
    this.#fields = fields;
  }

  get #lastStatus(): Status {
    return this.#plan.isCut ? 'incomplete' : 'completed';
  }

  part(text: string): object {
    return { type: 'output_text', text, annotations: [], logprobs: [] };
  }

  /** The one message; undefined text: just begun. */
  item(text?: string): object {
    return {
      id: this.itemId,
      type: 'message',
      role: 'assistant',
      status: text === undefined ? 'in_progress' : this.#lastStatus,
      content: text === undefined ? [] : [this.part(text)],
    };
  }

  /** The response; undefined text: just begun. */
  response(text?: string): object {
    const { derived, isCut, promptTokens, tokens } = this.#plan;
    const {
      instructions,
      max_output_tokens: limit,
      metadata,
      temperature,
      top_p: topP,
    } = this.#fields;
    const isBegun = text === undefined;
    return {
      id: `resp_${derived.id}`,
      object: 'response',
      created_at: derived.created,
      status: isBegun ? 'in_progress' : this.#lastStatus,
      error: null,
      incomplete_details: !isBegun && isCut ? { reason: 'max_output_tokens' } : null,
      instructions: instructions ?? null,
      max_output_tokens: limit ?? null,
      metadata: metadata ?? {},
      model: this.#generation.asked,
      output: isBegun ? [] : [this.item(text)],
      parallel_tool_calls: true,
      previous_response_id: null,
      temperature: temperature ?? 1,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_p: topP ?? 1,
      truncation: 'disabled',
      usage: isBegun
        ? null
        : {
            input_tokens: promptTokens,
            input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
            output_tokens: tokens,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: promptTokens + tokens,
          },
    };
  }
}

async function stream(generation: Generation, plan: TextPlan, reply: Reply): Promise<void> {
  const { answer } = generation;
  let count = 0;
  const event = (type: string, facts: object): string => {
    const numbered = { type, ...facts, sequence_number: count };
    count += 1;
    return namedEvent(numbered);
  };
  const item = { output_index: 0 };
  const part = { item_id: reply.itemId, output_index: 0, content_index: 0 };
  answer.head(200, eventStream);
  await answer.write(event('response.created', { response: reply.response() }));
  await answer.write(event('response.in_progress', { response: reply.response() }));
  await answer.write(event('response.output_item.added', { ...item, item: reply.item() }));
  await answer.write(event('response.content_part.added', { ...part, part: reply.part('') }));
  let text = '';
  for await (const token of pacedTokens(generation, plan)) {
    text += token;
    await answer.write(
      event('response.output_text.delta', { ...part, delta: token, logprobs: [] }),
    );
  }
  await answer.write(event('response.output_text.done', { ...part, text, logprobs: [] }));
  await answer.write(event('response.content_part.done', { ...part, part: reply.part(text) }));
  await answer.write(event('response.output_item.done', { ...item, item: reply.item(text) }));
  const last = plan.isCut ? 'response.incomplete' : 'response.completed';
  await answer.end(event(last, { response: reply.response(text) }));
}
