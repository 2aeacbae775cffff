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
  error(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  debug(fields: LogFields, message: string): void;
  /** A logger that adds these fields to each of its lines. */
  child(fields: LogFields): Logger;
}
