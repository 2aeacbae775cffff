import { createHash } from 'node:crypto';
import { arch, cpus, freemem, loadavg, platform, totalmem } from 'node:os';

const mebibyte = 1024 * 1024;
const gpuMemoryMb = 24_576;

/** What the pretended GPU is doing. */
export interface GpuState {
  /** The model in its memory, or null. */
  readonly resident: string | null;
  /** Whether something runs on it. */
  readonly isBusy: boolean;
}

/** One look at the machine, in llama-swap's field names: the real host, and a GPU that follows the models. */
export interface MachineSample {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly system: {
    readonly cpu_util_per_core: readonly number[];
    readonly mem_total_mb: number;
    readonly mem_used_mb: number;
    readonly mem_free_mb: number;
    readonly load_avg_1: number;
    readonly load_avg_5: number;
    readonly load_avg_15: number;
  };
  readonly gpu: {
    readonly id: number;
    readonly name: string;
    readonly temp_c: number;
    readonly gpu_util_pct: number;
    readonly mem_util_pct: number;
    readonly mem_used_mb: number;
    readonly mem_total_mb: number;
    readonly fan_speed_pct: number;
    readonly power_draw_w: number;
  };
}

const keptSamples = 100;

/** Looks at the machine, and remembers the last 100 looks. */
export class Machine {
  readonly #gpu: () => GpuState;
  readonly #samples: MachineSample[] = [];

  constructor(gpu: () => GpuState) {
    this.#gpu = gpu;
  }

  /** Looks now, and remembers it. */
  look(): MachineSample {
    const sample = { atMs: Date.now(), system: lookAtHost(), gpu: gpuAt(this.#gpu()) };
    this.#samples.push(sample);
    if (this.#samples.length > keptSamples) this.#samples.shift();
    return sample;
  }

  /** Oldest first. */
  get samples(): readonly MachineSample[] {
    return this.#samples;
  }

  /** What does not change. */
  hardware(): object {
    const { id, name } = gpuAt({ resident: null, isBusy: false });
    return {
      os: platform(),
      arch: arch(),
      cpu: { model: cpus()[0]?.model ?? '', cores: cpus().length },
      memory_total_mb: Math.round(totalmem() / mebibyte),
      gpus: [{ id, name, mem_total_mb: gpuMemoryMb }],
    };
  }
}

function lookAtHost(): MachineSample['system'] {
  const [one = 0, five = 0, fifteen = 0] = loadavg();
  return {
    cpu_util_per_core: cpus().map(({ times }) => {
      const all = times.user + times.nice + times.sys + times.idle + times.irq;
      return all === 0 ? 0 : 100 * (1 - times.idle / all);
    }),
    mem_total_mb: Math.round(totalmem() / mebibyte),
    mem_used_mb: Math.round((totalmem() - freemem()) / mebibyte),
    mem_free_mb: Math.round(freemem() / mebibyte),
    load_avg_1: one,
    load_avg_5: five,
    load_avg_15: fifteen,
  };
}

function gpuAt({ resident, isBusy }: GpuState): MachineSample['gpu'] {
  const used = resident === null ? 0 : modelMemoryMb(resident);
  return {
    id: 0,
    name: 'Demo GPU',
    temp_c: isBusy ? 71 : 38,
    gpu_util_pct: isBusy ? 98 : 0,
    mem_util_pct: (100 * used) / gpuMemoryMb,
    mem_used_mb: used,
    mem_total_mb: gpuMemoryMb,
    fan_speed_pct: isBusy ? 62 : 0,
    power_draw_w: isBusy ? 310 : 22,
  };
}

/** Between 2 and 18 GB, from the id. */
function modelMemoryMb(modelId: string): number {
  return 2048 + (createHash('sha256').update(modelId).digest().readUInt16BE(0) % 16_384);
}
