import { STATUS_CODES } from 'node:http';

/** A body with its content type. */
export interface TypedBody {
  contentType: string;
  body: Buffer;
}

/**
 * An error in the form a client asks for with `Accept`, by llama-swap's rule: text, a small page, else the JSON
 * envelope. Unlike llama-swap's, a client that also names JSON gets JSON, and so does every client that is told to slow
 * down (429).
 *
 * @param json the envelope
 */
export function errorInForm(
  accept: string | undefined,
  status: number,
  message: string,
  json: string,
): TypedBody {
  const asked = accept?.toLowerCase() ?? '';
  if (status !== 429 && !asked.includes('application/json')) {
    if (asked.includes('text/plain')) {
      const body = Buffer.from(`berth: ${message}\n`);
      return { contentType: 'text/plain; charset=utf-8', body };
    }
    if (asked.includes('text/html')) {
      return { contentType: 'text/html; charset=utf-8', body: Buffer.from(page(status, message)) };
    }
  }
  return { contentType: 'application/json', body: Buffer.from(json) };
}

function page(status: number, message: string): string {
  const title = `${status} ${STATUS_CODES[status] ?? 'Error'}`;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body><h1>${title}</h1><p>berth: ${escaped(message)}</p></body></html>\n`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
