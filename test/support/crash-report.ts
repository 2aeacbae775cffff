import { crashFaults } from './crash-checker.ts';
import type { CrashFault } from './crash-fault.ts';
import { crashFigures } from './crash-figures.ts';
import { CrashHistory } from './crash-history.ts';
import { crashRun } from './crash-run.ts';

/**
 * Crashes a gateway for `killMs` and judges what was seen; prints the seed and figures. The seed is CRASH_SEED when that is
 * set: it repeats what chance decides, not the machine's timing. A history with a fault is written to the temp dir.
 */
export async function crashReport(producers: number, killMs: number): Promise<CrashFault[]> {
  const seed = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 1e9));
  const history = new CrashHistory();
  print(`CRASH_SEED=${seed}`);
  let isSound = false;
  try {
    await crashRun({ seed, producers, killMs }, history);
    const faults = crashFaults(history.events);
    isSound = faults.length === 0;
    return faults;
  } finally {
    print(crashFigures(history.events));
    if (!isSound) print(`history: ${await history.write(`crash-${seed}`)}`);
  }
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);
