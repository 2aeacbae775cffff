import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type * as z from 'zod';
import { GatewayError } from '../errors.ts';
import {
  cancelAfterHeader,
  idempotencyKeyHeader,
  startDeadlineHeader,
} from './api/request-headers.ts';
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

/**
 * Reads `Prefer`, `Idempotency-Key`, `X-Berth-Start-Deadline` and `Cancel-After`. A preference that cannot be read does
 * not count (RFC 7240); any other of them that cannot is a GatewayError `bad_request` naming the header.
 */
export function termsOf(request: IncomingMessage, keyed: KeyedRequest): RequestTerms {
  const preferences = preferencesOf(request.headersDistinct.prefer ?? []);
  const isAsync = preferences.has('respond-async');
  const wait = preferences.get('wait') ?? '';
  return {
    isAsync,
    waitSeconds:
      isAsync && /^\d{1,9}$/.test(wait) ? Math.min(LONGEST_WAIT_SECONDS, Number(wait)) : 0,
    idempotency: idempotencyOf(request, keyed),
    deadlines: deadlinesOf(valuesIn(request)),
  };
}

/** The values of a header, by its lower-case name. */
export type HeaderValues = (name: string) => readonly string[];

const valuesIn =
  (request: IncomingMessage): HeaderValues =>
  (name) =>
    request.headersDistinct[name] ?? [];

/** Reads `X-Berth-Start-Deadline` and `Cancel-After`. Throws GatewayError `bad_request` that names the header. */
export function deadlinesOf(values: HeaderValues): JobDeadlines {
  const start = read(values, 'X-Berth-Start-Deadline', startDeadlineHeader);
  const cancelAfterMs = read(values, 'Cancel-After', cancelAfterHeader);
  return {
    ...(start === undefined ? {} : { start }),
    ...(cancelAfterMs === undefined ? {} : { cancelAfterMs }),
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
  const key = read(valuesIn(request), 'Idempotency-Key', idempotencyKeyHeader);
  if (key === undefined) return undefined;
  return {
    name: hashOf([member, key]),
    request: hashOf([request.method, request.url, bodySha256]),
  };
}

/** A header that may come once, as its schema reads it. */
function read<Value>(
  values: HeaderValues,
  name: string,
  schema: z.ZodType<Value, string>,
): Value | undefined {
  const [value, ...others] = values(name.toLowerCase());
  if (others.length > 0) throw bad(name, 'came more than once');
  if (value === undefined) return undefined;
  const found = schema.safeParse(value.trim());
  if (found.success) return found.data;
  throw bad(name, found.error.issues[0]?.message ?? 'cannot be read');
}

const bad = (header: string, what: string): GatewayError =>
  new GatewayError('bad_request', `the header ${header} ${what}`, { param: header });

const hashOf = (parts: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex');
