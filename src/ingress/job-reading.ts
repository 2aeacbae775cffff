import type { ExplainingDependencies } from '../gateway/explanation.ts';
import type { RelayDependencies } from '../gateway/relay-response.ts';
import type { JobRecords } from '../ports/job-records.ts';
import type { Telemetry } from '../ports/telemetry.ts';
import type { PublishedPlan } from './published-plan.ts';

/** What answering for jobs needs. */
export interface JobReading extends RelayDependencies {
  records: JobRecords;
  positions: PublishedPlan;
}

/** What the routes of jobs need. */
export interface JobRoutesDependencies extends JobReading {
  telemetry: Pick<Telemetry, 'jobSettled'>;
  explaining: ExplainingDependencies;
  /** Names of the configured bands. */
  bands: readonly string[];
  /** Between two signs of life of an event stream, in ms. */
  everyMs: number;
  /** Aborts when the gateway stops: whoever waits is answered then. */
  stopping: AbortSignal;
}
