import { createHash, randomUUID } from 'node:crypto';
import type { BodyStore } from '../ports/body-store.ts';
import type { NextShot } from '../ports/film-store.ts';
import type { JobDeadlines, JobFacts } from '../ports/job-queue.ts';
import { addressSealOf } from './deliver-webhook.ts';
import { isTooDeep } from './json-depth.ts';
import { valueAt, withValueAt } from './json-pointer.ts';
import type { RequestHead } from './run-job.ts';

/** A value that a shot takes from the result before it: JSON Pointers into that result and into its own body. */
export interface Take {
  readonly from: string;
  readonly to: string;
}

/** A shot before it is a job. `body`: its bytes; `file`: they are in the body store, under `fileName`. */
export interface ShotTemplate {
  readonly head: RequestHead;
  readonly facts: Omit<JobFacts, 'bodyBytes' | 'bodySha256' | 'film'>;
  readonly points: number;
  readonly body: string | { readonly file: true } | null;
  readonly take: readonly Take[];
  /** Those with a length count from the moment it enters the queue. */
  readonly deadlines?: JobDeadlines;
  /** Who is told of its end. */
  readonly webhook?: string;
}

/** What making shots needs. */
export interface ShotMaking {
  readonly store: BodyStore;
  readonly seal: (name: string, plain: Buffer) => Buffer;
  readonly openSeal: (name: string, sealed: Buffer) => Buffer;
  /** Bodies up to this size travel in Redis, in bytes. */
  readonly inlineBytes: number;
  /** Attempts a shot gets in all. */
  readonly maxAttempts: number;
}

/** Under what a template is sealed: bound to its film and its place. */
const sealName = (filmId: string, shot: number): string => `${filmId}/${shot}`;

/** Where a template's large body is kept. */
export const fileName = (filmId: string, shot: number): string => `${filmId}.${shot}`;

/** A template as it is stored. */
export function closeTemplate(
  filmId: string,
  shot: number,
  template: ShotTemplate,
  making: Pick<ShotMaking, 'seal'>,
): Buffer {
  return making.seal(sealName(filmId, shot), Buffer.from(JSON.stringify(template)));
}

/** A stored template. Throws when it was sealed with another key. */
export function openTemplate(
  filmId: string,
  shot: number,
  sealed: Buffer,
  making: Pick<ShotMaking, 'openSeal'>,
): ShotTemplate {
  return JSON.parse(making.openSeal(sealName(filmId, shot), sealed).toString()) as ShotTemplate;
}

/**
 * Makes a shot's job: its body with the values it takes from `previous`, the result before it, its request sealed under a
 * job id of its own.
 */
export async function makeShot(
  filmId: string,
  shot: number,
  template: ShotTemplate,
  previous: Buffer | undefined,
  making: ShotMaking,
): Promise<NextShot> {
  const { head, points, take, deadlines, webhook } = template;
  const whole = await bodyOf(filmId, shot, template, making.store);
  const filled = take.length === 0 ? whole : fill(whole, shot, take, previous);
  if (typeof filled === 'string') return { reason: filled };
  const id = randomUUID();
  const isInline = filled.length <= making.inlineBytes;
  if (!isInline) await storeBody(making.store, `${id}.request`, filled);
  const film = { id: filmId, shot };
  const facts = {
    ...template.facts,
    film,
    bodyBytes: filled.length,
    bodySha256: createHash('sha256').update(filled).digest('hex'),
  };
  const sealedHead = making.seal(id, Buffer.from(JSON.stringify(head)));
  return {
    job: {
      id,
      facts,
      points,
      maxAttempts: making.maxAttempts,
      sealedHead,
      body: isInline ? filled : null,
      ...(deadlines === undefined ? {} : { deadlines }),
      ...(webhook === undefined
        ? {}
        : { sealedWebhook: making.seal(addressSealOf(id), Buffer.from(webhook)) }),
    },
  };
}

/** Writes a body that is too large for Redis. */
export async function storeBody(store: BodyStore, name: string, bytes: Buffer): Promise<void> {
  const file = await store.create(name);
  try {
    await file.append(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function bodyOf(
  filmId: string,
  shot: number,
  { body }: ShotTemplate,
  store: BodyStore,
): Promise<Buffer> {
  if (body === null) return Buffer.alloc(0);
  if (typeof body === 'string') return Buffer.from(body);
  const pieces: Buffer[] = [];
  for await (const piece of store.read(fileName(filmId, shot))) pieces.push(piece);
  return Buffer.concat(pieces);
}

function fill(
  whole: Buffer,
  shot: number,
  take: readonly Take[],
  previous: Buffer | undefined,
): Buffer | string {
  const result = previous === undefined ? undefined : parsed(previous);
  if (result === undefined)
    return `shot ${shot} takes values from a result that is not there as JSON`;
  let body: unknown = JSON.parse(whole.toString());
  for (const { from, to } of take) {
    const value = valueAt(result, from);
    if (value === undefined)
      return `shot ${shot} takes ${from} from the result before it, where there is nothing`;
    if (isTooDeep(value)) return `shot ${shot} takes ${from}, which has too many levels`;
    body = withValueAt(body, to, value);
    if (body === undefined) return `shot ${shot} has no place ${to} in its body`;
  }
  return Buffer.from(JSON.stringify(body));
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch {
    return undefined;
  }
}
