import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { IdempotencyKey, JobDeadlines } from '../ports/job-queue.ts';

/** How a client wants its answer, and until when it is of use to it. */
export interface RequestTerms {
  /** `Prefer: respond-async`: whether the client comes back for the answer. */
  readonly isAsync: boolean;
  /** `Prefer: wait=…` beside it: how long it waits for the answer before, in seconds; 0: not at all. */
  readonly waitSeconds: number;
  readonly idempotency: IdempotencyKey | undefined;
  readonly deadlines: JobDeadlines;
}

/** What makes a request with an Idempotency-Key the same one. */
export interface KeyedRequest {
  readonly member: string;
  /** Lower-case hex SHA-256 of the body. */
  readonly bodySha256: string;
}

/** The terms of a request that has none. */
export const USUAL_TERMS: RequestTerms = {
  isAsync: false,
  waitSeconds: 0,
  idempotency: undefined,
  deadlines: {},
};

/** Longest wait before a 202, in seconds. */
const LONGEST_WAIT_SECONDS = 3600;
/** Latest deadline from now, in ms. */
const LONGEST_MS = 366 * 86_400_000;
const LONGEST_KEY = 255;
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/**
 * Reads `Prefer`, `Idempotency-Key`, `X-Berth-Start-Deadline` and `Cancel-After`. A preference that cannot be read does
 * not count (RFC 7240); any other of them that cannot is a GatewayError `bad_request` naming the header.
 */
export function termsOf(request: IncomingMessage, keyed: KeyedRequest): RequestTerms {
  const preferences = preferencesOf(request.headersDistinct.prefer ?? []);
  const isAsync = preferences.has('respond-async');
  const wait = preferences.get('wait') ?? '';
  const start = startDeadline(single(request, 'X-Berth-Start-Deadline'));
  const cancelAfterMs = cancelAfter(single(request, 'Cancel-After'));
  return {
    isAsync,
    waitSeconds:
      isAsync && /^\d{1,9}$/.test(wait) ? Math.min(LONGEST_WAIT_SECONDS, Number(wait)) : 0,
    idempotency: idempotencyOf(request, keyed),
    deadlines: {
      ...(start === undefined ? {} : { start }),
      ...(cancelAfterMs === undefined ? {} : { cancelAfterMs }),
    },
  };
}

/** The preferences by lower-case name, each with its value or ''; of repeated ones the first counts. */
function preferencesOf(lines: readonly string[]): Map<string, string> {
  const found = new Map<string, string>();
  for (const part of lines.join(',').split(',')) {
    const [, name, quoted, bare = ''] =
      /^\s*([!#$%&'*+.^_`|~\w-]+)\s*(?:=\s*(?:"([^"]*)"|([^\s;]*)))?\s*(?:;.*)?$/.exec(part) ?? [];
    const lower = name?.toLowerCase();
    if (lower !== undefined && !found.has(lower)) found.set(lower, quoted ?? bare);
  }
  return found;
}

/** What the request's Idempotency-Key stands for; undefined without one. Throws GatewayError `bad_request`. */
export function idempotencyOf(
  request: IncomingMessage,
  { member, bodySha256 }: KeyedRequest,
): IdempotencyKey | undefined {
  const key = single(request, 'Idempotency-Key');
  if (key === undefined) return undefined;
  if (key.length === 0 || key.length > LONGEST_KEY)
    throw bad('Idempotency-Key', `has 1 to ${LONGEST_KEY} characters`);
  return {
    name: hashOf([member, key]),
    request: hashOf([request.method, request.url, bodySha256]),
  };
}

function startDeadline(text: string | undefined): JobDeadlines['start'] {
  if (text === undefined) return undefined;
  if (/^\d{1,12}(?:\.\d{1,3})?$/.test(text) && isInTime(Number(text) * 1000))
    return { withinMs: Math.round(Number(text) * 1000) };
  const byMs = TIME.test(text) ? Date.parse(text.replace(' ', 'T')) : NaN;
  if (Number.isNaN(byMs) || byMs > Date.now() + LONGEST_MS)
    throw bad('X-Berth-Start-Deadline', 'is a number of seconds above 0, or a time of RFC 3339');
  return { byMs };
}

function cancelAfter(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, number, unit = 's'] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  const ms = Math.round(Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS]);
  if (!isInTime(ms))
    throw bad(
      'Cancel-After',
      'is a number of seconds above 0, or one with a unit: 90s, 15m, 2h, 1d',
    );
  return ms;
}

const isInTime = (ms: number): boolean => ms > 0 && ms <= LONGEST_MS;

/** The value of a header that may come once. */
function single(request: IncomingMessage, name: string): string | undefined {
  const values = request.headersDistinct[name.toLowerCase()] ?? [];
  if (values.length > 1) throw bad(name, 'came more than once');
  return values[0]?.trim();
}

const bad = (header: string, what: string): GatewayError =>
  new GatewayError('bad_request', `the header ${header} ${what}`, { param: header });

const hashOf = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');
