import { writeSync } from 'node:fs';
import { announce, superviseSelf } from '../adapters/process/lifecycle.ts';
import { createTelemetry } from '../adapters/telemetry/telemetry.ts';
import type { ProcessTelemetry } from '../adapters/telemetry/telemetry.ts';
import { loadConfigOrExit } from '../config/load.ts';
import type { BerthConfig } from '../config/load.ts';
import { StartRefused } from '../adapters/process/start-refused.ts';
import type { RunningProcess } from './running-process.ts';

/**
 * One of Berth's processes from configuration to exit. A start that is refused ends with one line and exit code 1.
 * The ingress announces its readiness itself, the others are ready once started.
 */
export async function runProcess(
  kind: 'ingress' | 'gpu' | 'scorer',
  start: (config: BerthConfig, telemetry: ProcessTelemetry) => Promise<RunningProcess>,
): Promise<void> {
  const config = loadConfigOrExit();
  const telemetry = createTelemetry({ process: kind, config });
  let running: RunningProcess | undefined;
  superviseSelf({
    graceMs: config.shutdown.graceSeconds * 1000,
    log: telemetry.log,
    stop: async () => running?.stop(),
  });
  try {
    running = await start(config, telemetry);
  } catch (error) {
    if (!(error instanceof StartRefused)) throw error;
    writeSync(2, `berth ${kind}: ${error.message}\n`);
    // A supervisor need not try again what cannot change by itself.
    process.exit(process.send === undefined ? 1 : 2);
  }
  if (kind !== 'ingress') announce({ type: 'ready' });
}
