import { Counter, Gauge, Histogram, Summary, type Registry } from 'prom-client';

/** What one of Berth's processes is; the `process` label of the merged exposition. */
export type ProcessKind = 'ingress' | 'gpu' | 'scorer';

/** Every value a closed label may have. A model is not among them: `ModelLabels` bounds it. */
type LabelValues = Readonly<Record<string, readonly string[]>>;

/** One metric, whatever its kind. */
export interface MetricDefinition {
  readonly name: string;
  readonly help: string;
  /** Label names with every value that exists at 0 from the start. */
  readonly labels?: LabelValues;
  /** Processes in which the series exist from the start; elsewhere they appear with the first fact. */
  readonly owners: readonly ProcessKind[];
}

/** Creates metrics in one registry; the series of a process that does not own them are left out. */
export class MetricFactory {
  private readonly registry: Registry;
  private readonly process: ProcessKind;

  constructor(registry: Registry, process: ProcessKind) {
    this.registry = registry;
    this.process = process;
  }

  counter(definition: MetricDefinition): Counter {
    const counter = new Counter(this.options(definition));
    this.start(definition, counter, (labels) => counter.inc(labels, 0));
    return counter;
  }

  gauge(definition: MetricDefinition, aggregator: 'sum' | 'max' = 'sum'): Gauge {
    const gauge = new Gauge({ ...this.options(definition), aggregator });
    this.start(definition, gauge, (labels) => gauge.set(labels, 0));
    return gauge;
  }

  histogram(definition: MetricDefinition, buckets: number[]): Histogram {
    const histogram = new Histogram({ ...this.options(definition), buckets });
    this.start(definition, histogram, (labels) => histogram.zero(labels));
    return histogram;
  }

  summary(definition: MetricDefinition): Summary {
    const summary = new Summary({
      ...this.options(definition),
      percentiles: [0.5, 0.9],
      maxAgeSeconds: 3600,
      ageBuckets: 6,
    });
    this.start(definition, summary, () => undefined);
    return summary;
  }

  private options({ name, help, labels = {} }: MetricDefinition) {
    return { name, help, labelNames: Object.keys(labels), registers: [this.registry] };
  }

  /** A metric without labels starts at 0 by itself, one with labels does not; owners decide for both. */
  private start(
    { labels = {}, owners }: MetricDefinition,
    metric: { remove(): void },
    zero: (labels: Record<string, string>) => void,
  ): void {
    const isOwn = owners.includes(this.process);
    const hasLabels = Object.keys(labels).length > 0;
    if (isOwn && hasLabels) combinations(labels).forEach(zero);
    if (!isOwn && !hasLabels) metric.remove();
  }
}

function combinations(labels: LabelValues): Record<string, string>[] {
  return Object.entries(labels).reduce<Record<string, string>[]>(
    (sets, [name, values]) =>
      sets.flatMap((set) => values.map((value) => ({ ...set, [name]: value }))),
    [{}],
  );
}
