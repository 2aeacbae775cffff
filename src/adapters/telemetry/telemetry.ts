import { Registry } from 'prom-client';
import type { DestinationStream } from 'pino';
import type { Rules } from '../../policy/rules.ts';
import type * as port from '../../ports/telemetry.ts';
import { createLogger, type LoggerOptions } from './logger.ts';
import { mergeRegistries } from './merge-registries.ts';
import type { ProcessKind } from './metric-factory.ts';
import { createMetrics } from './metrics.ts';
import { createProcessMetrics } from './process-metrics.ts';
import { FactTelemetry } from './fact-telemetry.ts';

/** The telemetry of one process, with the ways out for its metrics. */
export interface ProcessTelemetry extends port.Telemetry {
  /** The registry as JSON, for `mergeRegistries` in another process. */
  exportRegistry(): Promise<string>;
  /** This process's metrics alone, in the Prometheus text format. */
  exposition(): Promise<string>;
  /** Ends the sampling of the event loop. */
  close(): void;
}

/** What a process's telemetry needs to know. */
export interface TelemetryOptions {
  readonly process: ProcessKind;
  readonly config: {
    readonly rules: Pick<Rules, 'bands'>;
    readonly log: { readonly level: LoggerOptions['level'] };
  };
  /** Where log lines go; default: standard output. */
  readonly destination?: DestinationStream;
}

/** Log and metrics of one process; call it once a process. */
export function createTelemetry(options: TelemetryOptions): ProcessTelemetry {
  const { process, config, destination } = options;
  const registry = new Registry();
  const bands = Object.keys(config.rules.bands);
  const close = createProcessMetrics(registry);
  const log = createLogger({
    process,
    level: config.log.level,
    ...(destination === undefined ? {} : { destination }),
  });
  const exportRegistry = async () => JSON.stringify(await registry.getMetricsAsJSON());
  return Object.assign(new FactTelemetry(log, createMetrics(registry, process, bands), bands), {
    exportRegistry,
    exposition: async () => mergeRegistries([{ process, json: await exportRegistry() }]),
    close,
  });
}
