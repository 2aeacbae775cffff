import { get, sendJson, type ControlEntry } from './control-route.ts';
import { sendError } from './errors.ts';
import type { Exchange } from './exchange.ts';
import type { Machine, MachineSample } from './machine.ts';

/** What the machine is, and how it does. */
export function machineRoutes(machine: Machine): ControlEntry[] {
  return [
    [
      '/metrics',
      get(({ answer }) =>
        answer.send(
          200,
          { 'Content-Type': 'text/plain; version=0.0.4; charset=utf-8' },
          exposition(machine.look()),
        ),
      ),
    ],
    ['/api/performance', get((exchange) => sendPerformance(exchange, machine))],
    ['/api/hardware', get((exchange) => sendJson(exchange, machine.hardware()))],
    [
      '/api/version',
      get((exchange) =>
        sendJson(exchange, { version: 'demo', commit: 'demo', build_date: 'demo' }),
      ),
    ],
  ];
}

/** Every look so far and one more; those after `after` alone, when that is given. */
async function sendPerformance(exchange: Exchange, machine: Machine): Promise<void> {
  const { answer, headers, query } = exchange;
  const text = query.get('after') ?? '';
  const afterMs = text === '' ? -Infinity : Date.parse(text);
  if (Number.isNaN(afterMs)) {
    await sendError(answer, headers, 400, 'after must be a time as in RFC 3339');
    return;
  }
  machine.look();
  const meant = machine.samples.filter(({ atMs }) => atMs > afterMs);
  const stamp = ({ atMs }: MachineSample): object => ({ timestamp: new Date(atMs).toISOString() });
  await sendJson(exchange, {
    enabled: true,
    sys_stats: meant.map((sample) => ({ ...stamp(sample), ...sample.system })),
    gpu_stats: meant.map((sample) => ({ ...stamp(sample), ...sample.gpu })),
  });
}

/** Prometheus text. */
function exposition({ system, gpu }: MachineSample): string {
  const bytes = (mebibytes: number): number => mebibytes * 1024 * 1024;
  const gauge = (name: string, values: readonly (readonly [labels: string, value: number])[]) =>
    [
      `# TYPE llamaswap_${name} gauge\n`,
      ...values.map(([labels, value]) => `llamaswap_${name}${labels} ${value}\n`),
    ].join('');
  const card = `{id="${gpu.id}",name="${gpu.name}"}`;
  return [
    gauge(
      'cpu_util_percent',
      system.cpu_util_per_core.map((value, core) => [`{core="${core}"}`, value] as const),
    ),
    gauge('memory_total_bytes', [['', bytes(system.mem_total_mb)]]),
    gauge('memory_used_bytes', [['', bytes(system.mem_used_mb)]]),
    gauge('memory_free_bytes', [['', bytes(system.mem_free_mb)]]),
    gauge('load_average', [
      ['{interval="1m"}', system.load_avg_1],
      ['{interval="5m"}', system.load_avg_5],
      ['{interval="15m"}', system.load_avg_15],
    ]),
    gauge('gpu_temperature_celsius', [[card, gpu.temp_c]]),
    gauge('gpu_util_percent', [[card, gpu.gpu_util_pct]]),
    gauge('gpu_memory_util_percent', [[card, gpu.mem_util_pct]]),
    gauge('gpu_memory_used_bytes', [[card, bytes(gpu.mem_used_mb)]]),
    gauge('gpu_memory_total_bytes', [[card, bytes(gpu.mem_total_mb)]]),
    gauge('gpu_fan_speed_percent', [[card, gpu.fan_speed_pct]]),
    gauge('gpu_power_draw_watts', [[card, gpu.power_draw_w]]),
  ].join('');
}
