import { modelJson, readJsonObject, type Endpoint, type Generation } from './generation.ts';
import { eventStream, pacedTokens, planText, wholeText, type TextPlan } from './text-plan.ts';

/** `POST /completion` (and `/completions`), llama-server's own: `n_predict` tokens, below 1 a length of its own. */
export const llamaCompletion: Endpoint = (generation) => complete(generation, (last) => last);

/** `POST /infill`, likewise; the whole answer is a list. */
export const infill: Endpoint = (generation) => complete(generation, (last) => [last]);

async function complete(generation: Generation, wrap: (last: object) => unknown): Promise<void> {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const limit = fields.n_predict;
  const isOpen = typeof limit === 'number' && limit < 1;
  const plan = await planText(generation, 'n_predict', isOpen ? undefined : limit);
  if (plan === undefined) return;
  const { answer } = generation;
  if (fields.stream !== true) {
    const text = await wholeText(generation, plan);
    const last = wrap(lastOf(generation, plan, fields.prompt ?? '', text));
    await answer.send(200, modelJson, JSON.stringify(last));
    return;
  }
  answer.head(200, eventStream);
  let predicted = 0;
  for await (const token of pacedTokens(generation, plan)) {
    predicted += 1;
    await answer.write(eventOf({ ...pieceOf(plan, token, predicted), stop: false }));
  }
  await answer.end(eventOf(lastOf(generation, plan, fields.prompt ?? '', '')));
}

const eventOf = (data: object): string => `data: ${JSON.stringify(data)}\n\n`;

const pieceOf = (plan: TextPlan, content: string, predicted: number): object => ({
  index: 0,
  content,
  tokens: [],
  id_slot: 0,
  tokens_predicted: predicted,
  tokens_evaluated: plan.promptTokens,
});

function lastOf(
  { asked, times }: Generation,
  plan: TextPlan,
  prompt: unknown,
  content: string,
): object {
  const predictedMs = plan.tokens * times.tokenMs;
  return {
    ...pieceOf(plan, content, plan.tokens),
    stop: true,
    model: asked,
    prompt,
    has_new_line: false,
    truncated: false,
    stop_type: plan.isCut ? 'limit' : 'eos',
    stopping_word: '',
    tokens_cached: plan.promptTokens + plan.tokens - 1,
    timings: {
      prompt_n: plan.promptTokens,
      prompt_ms: 0,
      predicted_n: plan.tokens,
      predicted_ms: predictedMs,
      predicted_per_second: predictedMs > 0 ? (plan.tokens / predictedMs) * 1000 : null,
    },
  };
}
