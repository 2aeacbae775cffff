import { readFileSync } from 'node:fs';

/** Highest resident memory of a process so far, in bytes, as the kernel counts it. Linux only. */
export function peakBytes(pid: number | undefined): number {
  const kib = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} shows no VmHWM`);
  return Number(kib) * 1024;
}
