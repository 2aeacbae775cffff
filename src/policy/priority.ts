import { nearestBand } from './band.ts';
import { baseBound, type Rules } from './rules.ts';

/** What a request says about its urgency, and what its key and model say. */
export interface PriorityInput {
  /** Raw values of `X-LlamaSwap-Priority`, one for each time the header came; none: absent. */
  readonly llamaSwapPriority?: readonly string[];
  /** Raw values of `X-Priority`. */
  readonly xPriority?: readonly string[];
  /** Raw values of `X-Berth-Intent`. */
  readonly intent?: readonly string[];
  /** Points of a request of this key without any of the headers; default 0. */
  readonly keyDefault?: number;
  /** Least priority of the request's model, in steps of `X-Priority`. */
  readonly modelFloor?: number;
  /** Most points that this key may reach; null or absent: no ceiling of its own. */
  readonly ceiling?: number | null;
}

/** What was noticed on the way to a base priority; each is counted. */
export const priorityNotices = [
  'llama_swap_priority_unreadable',
  'x_priority_unreadable',
  'intent_unreadable',
  'intent_unknown',
  'clamped_to_ceiling',
  'clamped_to_bound',
] as const;

/** One of the things noticed. */
export type PriorityNotice = (typeof priorityNotices)[number];

/** A request's place among the bands. */
export interface BasePriority {
  /** Points, a whole number within ±10000. */
  readonly base: number;
  /** The named band nearest to `base`. */
  readonly band: string;
  readonly notices: readonly PriorityNotice[];
}

const xPriorityAliases: Readonly<Record<string, number>> = { elevated: 10, normal: 0, low: -10 };

/**
 * The base priority of a request. No request is refused for what its headers say.
 *
 * 1. `X-LlamaSwap-Priority`: points, or the name of a band in any case.
 * 2. Else `X-Priority`, in steps of `xPriorityUnit` points, or elevated, normal, low.
 * 3. Else `X-Berth-Intent`, looked up in `intents`; one that is not there is normal.
 * 4. Else the key's default, else 0.
 * 5. Not below the model's floor, then not above the key's ceiling, then within ±10000.
 *
 * A header that is present but cannot be read, or came twice, means 0.
 */
export function basePriority(input: PriorityInput, rules: Rules): BasePriority {
  const notices: PriorityNotice[] = [];
  const asked = askedPriority(input, rules, notices);
  const floor = input.modelFloor === undefined ? asked : input.modelFloor * rules.xPriorityUnit;
  const raised = Math.max(asked, floor);
  const ceiling = input.ceiling ?? raised;
  const lowered = Math.min(raised, ceiling);
  if (lowered < raised) notices.push('clamped_to_ceiling');
  const bounded = Math.max(-baseBound, Math.min(baseBound, lowered));
  if (bounded !== lowered) notices.push('clamped_to_bound');
  const base = bounded === 0 ? 0 : bounded;
  return { base, band: nearestBand(base, rules), notices };
}

function askedPriority(input: PriorityInput, rules: Rules, notices: PriorityNotice[]): number {
  if (isPresent(input.llamaSwapPriority)) {
    const points = readNumber(input.llamaSwapPriority, rules.bands);
    if (points === null) notices.push('llama_swap_priority_unreadable');
    return points ?? 0;
  }
  if (isPresent(input.xPriority)) {
    const steps = readNumber(input.xPriority, xPriorityAliases);
    if (steps === null) notices.push('x_priority_unreadable');
    return (steps ?? 0) * rules.xPriorityUnit;
  }
  if (isPresent(input.intent)) return intentPriority(input.intent, rules, notices);
  return input.keyDefault ?? 0;
}

function intentPriority(
  values: readonly string[],
  rules: Rules,
  notices: PriorityNotice[],
): number {
  const intent = onlyWord(values);
  if (intent === null) {
    notices.push('intent_unreadable');
    return 0;
  }
  const band = lookUp(rules.intents, intent);
  if (band === undefined) notices.push('intent_unknown');
  return lookUp(rules.bands, (band ?? 'normal').toLowerCase()) ?? 0;
}

function isPresent(values: readonly string[] | undefined): values is readonly string[] {
  return values !== undefined && values.length > 0;
}

/** The single value in lower case without outer blanks; null when it is empty or came more than once. */
function onlyWord(values: readonly string[]): string | null {
  const word = values.length === 1 ? String(values[0]).replace(/^[ \t]+|[ \t]+$/g, '') : '';
  return word === '' ? null : word.toLowerCase();
}

function readNumber(
  values: readonly string[],
  aliases: Readonly<Record<string, number>>,
): number | null {
  const word = onlyWord(values);
  if (word === null) return null;
  return /^[+-]?[0-9]+$/.test(word) ? Number(word) : (lookUp(aliases, word) ?? null);
}

/** A key of the table in any case; never one that every object has. */
function lookUp<T>(table: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.entries(table).find(([key]) => key.toLowerCase() === word)?.[1];
}
