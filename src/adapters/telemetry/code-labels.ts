import type { FailureCode } from '../../errors.ts';
import type { RefusalCode } from '../../ports/telemetry.ts';

/** Every code a request can be refused with; a code that is missing here does not compile. */
export const rejectionLabels = Object.keys({
  bad_request: true,
  unauthorized: true,
  forbidden: true,
  job_not_found: true,
  result_gone: true,
  body_too_large: true,
  unsupported_encoding: true,
  idempotency_mismatch: true,
  member_queue_full: true,
  queue_full: true,
  memory_full: true,
  storage_full: true,
  redis_unavailable: true,
  shutting_down: true,
  model_unavailable: true,
  model_server_unreachable: true,
  internal_error: true,
} satisfies Record<RefusalCode, true>);

/** Every code an attempt can fail with. */
export const retryLabels = Object.keys({
  model_unavailable: true,
  model_server_unreachable: true,
  model_server_truncated: true,
  model_server_invalid: true,
  model_server_timeout: true,
  lease_lapsed: true,
  storage_lost: true,
  internal_error: true,
} satisfies Record<FailureCode, true>);
