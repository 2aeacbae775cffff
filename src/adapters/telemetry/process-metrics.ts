import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Counter, Gauge, type Registry } from 'prom-client';

/** Milliseconds between two samples of the event loop's delay. */
const sampleMs = 20;
const quantiles = [0.5, 0.99, 1];

/**
 * What the operator needs of the Node process itself. prom-client's own set is left out: it reads /proc and
 * lists every handle at each export, which the GPU worker would do once a second between two jobs.
 *
 * @returns what ends the sampling
 */
export function createProcessMetrics(registry: Registry): () => void {
  const registers = [registry];
  const delay = monitorEventLoopDelay({ resolution: sampleMs });
  delay.enable();
  new Gauge({
    name: 'berth_process_start_time_seconds',
    help: 'Start of the process in unix time.',
    registers,
    aggregator: 'min',
  }).set(Math.round(Date.now() / 1000 - process.uptime()));
  new Counter({
    name: 'berth_process_cpu_seconds_total',
    help: 'CPU time of the process, user and system.',
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new Gauge({
    name: 'berth_process_memory_bytes',
    help: 'Memory of the process: resident, heap in use, and buffers outside the heap.',
    labelNames: ['area'],
    registers,
    collect() {
      const { rss, heapUsed, external } = process.memoryUsage();
      this.set({ area: 'resident' }, rss);
      this.set({ area: 'heap' }, heapUsed);
      this.set({ area: 'external' }, external);
    },
  });
  new Gauge({
    name: 'berth_process_event_loop_lag_seconds',
    help: 'Delay of the event loop since the last export; quantile 1 is the longest.',
    labelNames: ['quantile'],
    registers,
    aggregator: 'max',
    collect() {
      for (const quantile of quantiles) {
        const lagMs = delay.count === 0 ? 0 : delay.percentile(quantile * 100) / 1e6 - sampleMs;
        this.set({ quantile: String(quantile) }, Math.max(0, Math.round(lagMs * 1000)) / 1e6);
      }
      delay.reset();
    },
  });
  return () => void delay.disable();
}
