import { readFileSync } from 'node:fs';

/** Resident memory of a process in MB (10^6 bytes), as the kernel counts it. Linux only. */
export function residentMb(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} shows no VmRSS`);
  return (Number(kib) * 1024) / 1e6;
}

/** Looks at the resident memory of processes every 100 ms while `work` runs; returns each one's growth in MB. */
export async function growthDuring(
  pids: readonly number[],
  work: () => Promise<void>,
): Promise<number[]> {
  const before = pids.map(residentMb);
  const peak = [...before];
  const look = (): void => {
    for (const [index, pid] of pids.entries())
      peak[index] = Math.max(peak[index] ?? 0, residentMb(pid));
  };
  const timer = setInterval(look, 100);
  try {
    await work();
    look();
  } finally {
    clearInterval(timer);
  }
  return peak.map((mb, index) => mb - (before[index] ?? 0));
}
