import { AggregatorRegistry, Registry } from 'prom-client';

/** The content type of what `mergeRegistries` returns. */
export const expositionContentType: string = Registry.PROMETHEUS_CONTENT_TYPE;

/** One process's exported registry. */
export interface RegistryPart {
  /** Kind of process; becomes the label `process`. */
  readonly process: string;
  /** What its `exportRegistry` returned. */
  readonly json: string;
}

interface ExportedMetric {
  readonly name: string;
  readonly values: readonly { readonly value: number | null; readonly labels: object }[];
}

/**
 * Prometheus text of all parts together. Equal series of processes of one kind are added (two ingresses), or
 * joined as the metric asks, and each series is labelled with its `process`. A part that cannot be read is
 * left out, so are metrics without series.
 */
export async function mergeRegistries(parts: readonly RegistryPart[]): Promise<string> {
  const labelled = parts.map((part) =>
    parse(part.json)
      .map((metric) => ({ ...metric, values: labelValues(metric, part.process) }))
      .filter((metric) => metric.values.length > 0),
  );
  return AggregatorRegistry.aggregate(labelled).metrics();
}

function labelValues({ values }: ExportedMetric, process: string): ExportedMetric['values'] {
  return values
    .filter(({ value }) => value !== null)
    .map((value) => ({ ...value, labels: { ...value.labels, process } }));
}

function parse(json: string): readonly ExportedMetric[] {
  try {
    const metrics: unknown = JSON.parse(json);
    return Array.isArray(metrics) ? metrics.filter(isMetric) : [];
  } catch {
    // Another version's process may publish what this one does not know; the rest is still worth showing.
    return [];
  }
}

function isMetric(value: unknown): value is ExportedMetric {
  if (typeof value !== 'object' || value === null) return false;
  return 'name' in value && 'values' in value && Array.isArray(value.values);
}
