import { createHash } from 'node:crypto';
import { FILM_BYTES, MOST_SHOTS, readShot } from '../ingress/film-request.ts';
import { GatewayError } from '../errors.ts';
import { CommandError } from './command-error.ts';
import type { Refusal } from './command-error.ts';

/** A film as its file describes it. */
export interface ShotsFile {
  /** Lower-case hex SHA-256 of the file. */
  readonly sha256: string;
  /** The request that makes it; the same file gives the same bytes. */
  readonly body: Buffer;
  /** Line of each shot, counted from 1. */
  readonly lines: readonly number[];
}

/**
 * Reads a film: a shot a line, each a JSON object as in `POST /berth/films`; empty lines do not count. Throws CommandError
 * that names the line, and the field where one is at fault.
 */
export function readShots(bytes: Buffer): ShotsFile {
  const texts: string[] = [];
  const lines: number[] = [];
  const decoded = new TextDecoder('utf-8').decode(bytes);
  for (const [index, line] of decoded.split('\n').entries()) {
    const text = line.trim();
    if (text === '') continue;
    check(text, index + 1, lines.length === 0);
    texts.push(text);
    lines.push(index + 1);
  }
  if (lines.length === 0)
    throw new CommandError('the file has no shots: one JSON object a line is needed');
  if (lines.length > MOST_SHOTS)
    throw new CommandError(`a film has at most ${MOST_SHOTS} shots, the file has ${lines.length}`);
  const body = Buffer.from(`{"shots":[${texts.join(',\n')}]}`);
  if (body.length > FILM_BYTES)
    throw new CommandError(`a film has at most ${FILM_BYTES} bytes, the file has ${body.length}`);
  return { sha256: createHash('sha256').update(bytes).digest('hex'), body, lines };
}

/** Berth's refusal of a film with the line it is about, where it names a shot: `shots[3].path` is on the fourth's. */
export function withLine(refusal: Refusal, { lines }: ShotsFile): CommandError {
  const [, index, field] = /^shots\[(\d+)\]\.?(.*)$/.exec(refusal.param ?? '') ?? [];
  const line = index === undefined ? undefined : lines[Number(index)];
  if (line === undefined || field === undefined) return refusal;
  const what = refusal.what.replace(`${refusal.param ?? ''}: `, '');
  return new CommandError(`line ${line}: ${field === '' ? '' : `${field}: `}${what}`);
}

function check(text: string, line: number, isFirst: boolean): void {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new CommandError(`line ${line} is not JSON: ${(error as Error).message}`);
  }
  try {
    readShot(json, isFirst);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    throw new CommandError(`line ${line}: ${error.message}`);
  }
}
