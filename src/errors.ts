/** Refused before a job exists. */
export type RejectCode =
  | 'bad_request'
  | 'unauthorized'
  | 'forbidden'
  | 'job_not_found'
  | 'result_gone'
  | 'body_too_large'
  | 'unsupported_encoding'
  | 'idempotency_mismatch'
  | 'member_queue_full'
  | 'queue_full'
  | 'memory_full'
  | 'storage_full'
  | 'redis_unavailable'
  | 'shutting_down';

/** Removed after it was queued, before or while it ran. */
export type EvictCode = 'cancelled' | 'client_closed' | 'start_deadline_passed';

/** The job ran, or tried to, and did not succeed. */
export type FailureCode =
  | 'model_unavailable'
  | 'model_server_unreachable'
  | 'model_server_truncated'
  | 'model_server_invalid'
  | 'model_server_timeout'
  | 'lease_lapsed'
  | 'storage_lost'
  | 'internal_error';

/** Every way Berth itself can say no: the closed list of design.md section 8. */
export type ErrorCode = RejectCode | EvictCode | FailureCode;

/** What a GatewayError may carry beside its code. */
export interface GatewayErrorOptions {
  cause?: unknown;
  /** Seconds after which a repeat makes sense; sent as `Retry-After` where the code allows one. */
  retryAfterSeconds?: number;
  /** The offending request field, if one is to blame. */
  param?: string;
  /** What failed may have happened all the same: its answer was lost. */
  isUncertain?: boolean;
}

/**
 * A fault Berth answers for. `message` is shown to the client, so it holds no prompt, no credential
 * and nothing of another member's.
 */
export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly retryAfterSeconds: number | undefined;
  readonly param: string | undefined;
  readonly isUncertain: boolean;

  constructor(code: ErrorCode, message: string, options: GatewayErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'GatewayError';
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.param = options.param;
    this.isUncertain = options.isUncertain ?? false;
  }
}
