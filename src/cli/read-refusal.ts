import { Refusal } from './command-error.ts';
import { printable } from './printable.ts';

/** What is shown of an error that is not Berth's, in characters. */
const SHOWN = 300;

/** What an answer of 400 or above says; `body`: all of it. */
export function readRefusal(status: number, body: Buffer): Refusal {
  const text = body.toString();
  const { src, error } = envelopeOf(text);
  const message = typeof error === 'string' ? error : error?.message;
  const what = printable(typeof message === 'string' ? message : text).slice(0, SHOWN);
  const { code, param } = typeof error === 'object' ? error : {};
  return new Refusal({
    status,
    code: src === 'berth' && typeof code === 'string' ? printable(code) : null,
    param: typeof param === 'string' ? printable(param) : null,
    what: what === '' ? 'no reason was given' : what,
  });
}

/** Whether an answer is an error of Berth itself, not of the model server behind it. */
export const isBerthsOwn = (body: Buffer): boolean => envelopeOf(body.toString()).src === 'berth';

interface Envelope {
  readonly src?: unknown;
  readonly error?: string | { message?: unknown; code?: unknown; param?: unknown };
}

function envelopeOf(text: string): Envelope {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === 'object' && json !== null ? json : {};
  } catch {
    return {};
  }
}
