import type { PoolStatus } from '../adapters/redis/pool-status.ts';
import type { ProcessTelemetry } from '../adapters/telemetry/telemetry.ts';

/** Publishes this process' metrics once a second, so that any ingress can show them; clear the timer to end it. */
export function publishMetrics(
  telemetry: ProcessTelemetry,
  status: PoolStatus,
  kind: 'ingress' | 'gpu' | 'scorer',
): NodeJS.Timeout {
  const publish = async (): Promise<void> => {
    await status.publishRegistry(kind, String(process.pid), await telemetry.exportRegistry());
  };
  // A missed second does not matter; an outage is reported by the connection.
  return setInterval(() => void publish().catch(() => undefined), 1000);
}
