import type { Answer } from './answer.ts';
import type { DemoModel } from './catalogue.ts';
import { sendModelError } from './errors.ts';

/** How long the pretended work takes, in real milliseconds (the speed is already taken into account). */
export interface WorkTimes {
  readonly tokenMs: number;
  readonly imageMs: number;
  readonly videoMs: number;
  /** What a request's own `demo_ms` is divided by. */
  readonly speed: number;
}

/** Tokens read and written. */
export interface TokensUsed {
  input: number;
  output: number;
}

/** One request that runs on the resident model. */
export interface Generation {
  readonly answer: Answer;
  readonly model: DemoModel;
  /** The model as the request named it. */
  readonly asked: string;
  readonly method: string;
  /** Path at the model's own server, percent-encoding kept. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly contentType: string;
  readonly body: Buffer;
  /** SHA-256 of the body. */
  readonly seed: Buffer;
  readonly times: WorkTimes;
  /** What the answer has counted so far; the activity list shows it. */
  readonly used: TokensUsed;
  /** Keeps the GPU counted as busy after the answer, until the function returned is called. */
  readonly holdGpu: () => () => void;
}

/** Answers one generation in full; throws what the answer throws. */
export type Endpoint = (generation: Generation) => Promise<void>;

/** Content type of the JSON that a model's own server sends. */
export const modelJson = { 'Content-Type': 'application/json; charset=utf-8' };

/** The request's JSON object; undefined when it has been answered with the model's 400 because it is none. */
export async function readJsonObject(
  generation: Generation,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const value: unknown = JSON.parse(generation.body.toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Answered below like any other body that is no object.
  }
  await sendModelError(generation.answer, 400, 'the request body is not a JSON object');
  return undefined;
}

/** `demo_ms` of a JSON request replaces the usual time, so that callers can choose how long a job takes. */
export function workMs(
  fields: Readonly<Record<string, unknown>>,
  usualMs: number,
  times: WorkTimes,
): number {
  const chosen = fields.demo_ms;
  return typeof chosen === 'number' && chosen >= 0 ? chosen / times.speed : usualMs;
}
