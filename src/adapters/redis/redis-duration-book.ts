import type { Redis } from 'ioredis';
import { Durations, SAMPLES_KEPT } from '../../policy/durations.ts';
import type {
  DurationEstimate,
  DurationGuesses,
  DurationSeries,
  LoadEstimate,
  LoadSeries,
} from '../../policy/durations.ts';
import type { DurationBook, DurationSample } from '../../ports/duration-book.ts';
import type { JobKind } from '../../ports/telemetry.ts';
import { formatSeries, parseSeries } from './duration-series.ts';
import type { SeriesName } from './duration-series.ts';
import type { PoolKeys } from './keys.ts';
import { Scripts } from './scripts.ts';

/** What the book needs. */
export interface RedisDurationBookOptions {
  redis: Redis;
  keys: PoolKeys;
  /** What is assumed before anything was measured (`durations` of the configuration). */
  guesses: DurationGuesses;
  /** Milliseconds between two readings; default 3000. */
  refreshMs?: number;
  /** Series kept; the one that was not added to for longest goes first. Default 500. */
  seriesKept?: number;
  onError: (error: Error) => void;
}

/** Longest model id that is remembered, in characters. */
const LONGEST_ID = 256;

/**
 * Durations in Redis: a list of times for each series, and a sorted set of the series by the revision of their last
 * sample, so that a reader fetches only what changed. A reading that fails leaves what was known.
 */
export class RedisDurationBook implements DurationBook {
  private readonly options: RedisDurationBookOptions;
  private readonly scripts: Scripts;
  private readonly prefix: string;
  private readonly known = new Map<string, { revision: number; ms: number[] }>();
  private durations: Durations;
  private revision = 0;
  private timer: NodeJS.Timeout | undefined;
  private reading: Promise<void> | undefined;

  constructor(options: RedisDurationBookOptions) {
    this.options = options;
    this.scripts = new Scripts(options.redis);
    this.prefix = `${options.keys.pool}:durations:`;
    this.durations = new Durations([], [], options.guesses);
  }

  /** Reads the book now and every few seconds until `close`. Never rejects. */
  async start(): Promise<void> {
    this.timer = setInterval(() => void this.refresh(), this.options.refreshMs ?? 3_000);
    await this.refresh();
  }

  /** Ends the readings; the connection is its owner's. */
  close(): void {
    clearInterval(this.timer);
  }

  async record({ ms, ...series }: DurationSample): Promise<void> {
    await this.add({ of: 'run', ...series }, ms);
  }

  async recordLoad({ model, ms }: { model: string; ms: number }): Promise<void> {
    await this.add({ of: 'load', model }, ms);
  }

  estimateOf(model: string, route: string, kind: JobKind, cold: boolean): DurationEstimate {
    return this.durations.estimateOf(model, route, kind, cold);
  }

  loadOf(model: string): LoadEstimate {
    return this.durations.loadOf(model);
  }

  /** Reads what changed since the last reading; several calls at once are one. Never rejects. */
  async refresh(): Promise<void> {
    this.reading ??= this.read()
      .catch((error: unknown) => this.options.onError(error as Error))
      .finally(() => (this.reading = undefined));
    await this.reading;
  }

  private async add(series: SeriesName, ms: number): Promise<void> {
    if (!Number.isFinite(ms) || ms < 0 || series.model.length > LONGEST_ID) return;
    const { seriesKept = 500, onError } = this.options;
    const name = formatSeries(series);
    const numbers = [Math.round(ms), SAMPLES_KEPT, seriesKept].map(String);
    const values = [name, ...numbers, this.listKey('')];
    const { prefix } = this;
    try {
      await this.scripts.run(
        'record-duration',
        `${prefix}used`,
        `${prefix}revision`,
        this.listKey(name),
        ...values,
      );
    } catch (error) {
      onError(error as Error);
    }
  }

  private async read(): Promise<void> {
    const { redis, guesses } = this.options;
    const revision = Number(await redis.get(`${this.prefix}revision`));
    if (revision === this.revision) return;
    // Redis lost what it had: equal revisions no longer mean equal samples.
    if (revision < this.revision) this.known.clear();
    const rows = await redis.zrange(`${this.prefix}used`, '0', '-1', 'WITHSCORES');
    const current = new Map<string, number>();
    for (let at = 0; at < rows.length; at += 2) current.set(rows[at] ?? '', Number(rows[at + 1]));
    const changed = [...current].filter(([name, at]) => this.known.get(name)?.revision !== at);
    const lists = await Promise.all(
      changed.map(async ([name]) => redis.lrange(this.listKey(name), 0, -1)),
    );
    for (const name of this.known.keys()) if (!current.has(name)) this.known.delete(name);
    for (const [index, [name, at]] of changed.entries())
      this.known.set(name, { revision: at, ms: (lists[index] ?? []).map(Number) });
    this.durations = new Durations(...this.series(), guesses);
    this.revision = revision;
  }

  private series(): [DurationSeries[], LoadSeries[]] {
    const runs: DurationSeries[] = [];
    const loads: LoadSeries[] = [];
    for (const [text, { ms }] of this.known) {
      const name = parseSeries(text);
      if (name?.of === 'run') runs.push({ ...name, ms });
      else if (name !== undefined) loads.push({ ...name, ms });
    }
    return [runs, loads];
  }

  private listKey(name: string): string {
    return `${this.prefix}of:${name}`;
  }
}
