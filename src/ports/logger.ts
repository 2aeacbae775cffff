/**
 * Extra fields of a log line: ids, names, numbers with their unit in the key. An Error goes under `err`.
 * Never prompt or answer text, never a credential.
 */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * Structured log of one process. `message` is a constant such as `redis.reconnected`; what varies goes in
 * the fields. error: a person must act; warn: degraded and recovering; info: lifecycle; debug: decisions
 * with their inputs.
 */
export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to each of its lines. */
  child(fields: LogFields): Logger;
}
