/** What an error answer of the model server says. */
export interface UpstreamError {
  /** Whether llama-swap itself made it, not the model. */
  isOwn: boolean;
  message: string;
  /** Empty where it has none. */
  type: string;
  /** Empty where it has none, or where it is no text. */
  code: string;
  /** The error object as it was sent; undefined where there was none. */
  sent: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Reads an error body in every shape llama-swap and the servers behind it use: `error` as a text (llama-swap to v250)
 * and as an object (from v251, and OpenAI's and Anthropic's own). Anything else, such as a proxy's HTML, has no message.
 */
export function readUpstreamError(body: string): UpstreamError {
  const parsed = parse(body);
  const { src, error } = parsed;
  const isOwn = src === 'llama-swap';
  if (typeof error === 'string')
    return { isOwn, message: error, type: '', code: '', sent: undefined };
  if (typeof error !== 'object' || error === null) {
    const message = textOf(parsed.message) || textOf(parsed.detail);
    return { isOwn, message, type: '', code: '', sent: undefined };
  }
  const sent = error as Readonly<Record<string, unknown>>;
  const { message, type, code } = sent;
  return { isOwn, message: textOf(message), type: textOf(type), code: textOf(code), sent };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

function parse(body: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
