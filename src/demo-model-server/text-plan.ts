import { derive, tokensOf, type Derived } from './derive.ts';
import { sendModelError } from './errors.ts';
import type { Generation } from './generation.ts';
import { monotonicMs, waitFor, waitUntil } from './pace.ts';

const mostTokens = 1_000_000;

/** The parts of a text answer that do not depend on the protocol. */
export interface TextPlan {
  readonly derived: Derived;
  readonly promptTokens: number;
  readonly tokens: number;
  /** The request's own limit ended the text. */
  readonly isCut: boolean;
}

/** Head of a stream of events. */
export const eventStream = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
};

/** A whole number of tokens, from 1 to a million. */
export function isTokenCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) > 0 && (value as number) <= mostTokens;
}

/**
 * Plans an answer of exactly `limit` tokens, or of a length of its own when that is undefined or null; `field` is the
 * limit's name. Undefined: answered with the model's 400, because it is no number of tokens.
 */
export async function planText(
  generation: Generation,
  field: string,
  limit: unknown,
): Promise<TextPlan | undefined> {
  const isGiven = limit !== undefined && limit !== null;
  if (isGiven && !isTokenCount(limit)) {
    await sendModelError(generation.answer, 400, `${field} must be a whole number above 0`);
    return undefined;
  }
  const derived = derive(generation.seed);
  return {
    derived,
    promptTokens: Math.ceil(generation.body.length / 4),
    tokens: isGiven ? limit : derived.naturalTokens,
    isCut: isGiven,
  };
}

/** The whole text, after the time that its tokens take. */
export async function wholeText(generation: Generation, plan: TextPlan): Promise<string> {
  generation.used.input = plan.promptTokens;
  await waitFor(plan.tokens * generation.times.tokenMs, generation.answer.signal);
  generation.used.output = plan.tokens;
  return [...tokensOf(generation.seed, plan.tokens)].join('');
}

/** The text token by token, each when its time has come; the clock starts with the first one asked for. */
export async function* pacedTokens(
  { answer, seed, times, used }: Generation,
  plan: TextPlan,
): AsyncGenerator<string> {
  const startedMs = monotonicMs();
  used.input = plan.promptTokens;
  for (const token of tokensOf(seed, plan.tokens)) {
    await waitUntil(startedMs + (used.output + 1) * times.tokenMs, answer.signal);
    used.output += 1;
    yield token;
  }
}
